//! A network of a command's own: a namespace that has nothing but a loopback device, in which the helper
//! listens for the [proxy](super::proxy).

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use rustix::{
    io::Errno,
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with},
    thread::UnshareFlags,
};

use super::{Confinement, namespaces};
use crate::helper;

/// Where the proxy is reached from inside. Nothing else listens in a new namespace, so any port is free.
pub(crate) const PORT: u16 = 3128;

/// Moves this process into a network of its own, unless `bwrap` has done that, and listens there. To be called by the
/// helper alone, while it has one thread.
///
/// # Errors
///
/// When the kernel has no such namespace for this user.
pub(crate) fn listen(by: Confinement) -> io::Result<TcpListener> {
    if by == Confinement::Landlock {
        namespaces::enter(UnshareFlags::NEWNET)?;
        start_loopback()?;
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))
}

/// Returns whether the kernel lets this program's helper do so.
pub(super) fn is_there() -> bool {
    let mut probe = Command::new("/proc/self/exe");
    probe.arg0(helper::NAME).arg(helper::PROBE);
    probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    helper::is_offered() && probe.status().is_ok_and(|it| it.success())
}

/// Switches the loopback device on, by a message to the kernel. Source: `linux/netlink.h`,
/// `linux/rtnetlink.h`; all numbers are as the processor has them.
fn start_loopback() -> io::Result<()> {
    /// `RTM_NEWLINK`, which also changes a device that is there.
    const NEW_LINK: u16 = 16;
    /// `NLM_F_REQUEST` and `NLM_F_ACK`: the kernel answers with an error or a yes.
    const FLAGS: u16 = 1 | 4;
    /// The loopback device is the first one of each network.
    const LOOPBACK: i32 = 1;
    /// `IFF_UP`: the device takes packets.
    const UP: u32 = 1;
    /// `NLMSG_ERROR`; with 0 it is a yes.
    const ERROR: u16 = 2;
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(FLAGS.to_ne_bytes());
    // Number of the message, and the port of who sends it.
    message.extend([0; 8]);
    // Family and kind of device.
    message.extend([0; 4]);
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    // The first protocol of the family is that of routes and devices.
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 256];
    let (n_bytes, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    let answer = answer.get(..n_bytes).unwrap_or_default();
    let kind = answer.get(4..6).and_then(|it| it.try_into().ok()).map(u16::from_ne_bytes);
    let errno = answer.get(16..20).and_then(|it| it.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, errno) {
        (Some(ERROR), Some(0)) => Ok(()),
        (Some(ERROR), Some(errno)) => Err(io::Error::from_raw_os_error(-errno)),
        _ => Err(Errno::PROTO.into()),
    }
}
