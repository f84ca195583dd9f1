//! Which system calls a confined command does not get, each with the reason.
//!
//! They fail with `EPERM`, as for a user without the right to them, so that programs that can do
//! without go on.

use std::collections::BTreeMap;

use ennead_runtime::sandbox::SandboxNetwork;
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

/// Bit of a number by which x86-64 calls the same with 32-bit pointers.
#[cfg(target_arch = "x86_64")]
const X32: c_long = 0x4000_0000;

/// Calls that have another number there: `ptrace`, `kexec_load`, `process_vm_readv`,
/// `process_vm_writev` and `ioctl`. Source: `syscall_64.tbl` of Linux.
#[cfg(target_arch = "x86_64")]
const ONLY_X32: [c_long; 5] = [521, 528, 539, 540, 514];

/// Calls that are refused whatever their arguments are.
const REFUSED: &[(&str, &[c_long])] = &[
    (
        "reads or changes other processes",
        &[
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_process_madvise,
            libc::SYS_kcmp,
            libc::SYS_pidfd_getfd,
        ],
    ),
    (
        "changes which files there are",
        &[
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_chroot,
            libc::SYS_move_mount,
            libc::SYS_open_tree,
            libc::SYS_fsopen,
            libc::SYS_fsconfig,
            libc::SYS_fsmount,
            libc::SYS_fspick,
            libc::SYS_mount_setattr,
            libc::SYS_swapon,
            libc::SYS_swapoff,
            libc::SYS_quotactl,
            libc::SYS_open_by_handle_at,
        ],
    ),
    ("makes or enters namespaces", &[libc::SYS_unshare, libc::SYS_setns]),
    (
        "changes the kernel or the machine",
        &[
            libc::SYS_kexec_load,
            libc::SYS_kexec_file_load,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_delete_module,
            libc::SYS_reboot,
            libc::SYS_settimeofday,
            libc::SYS_clock_settime,
            libc::SYS_clock_adjtime,
            libc::SYS_adjtimex,
            libc::SYS_sethostname,
            libc::SYS_setdomainname,
            libc::SYS_syslog,
            libc::SYS_acct,
        ],
    ),
    (
        "reaches parts of the kernel that had many faults, and no ordinary program needs",
        &[
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_userfaultfd,
            libc::SYS_fanotify_init,
            libc::SYS_lookup_dcookie,
            libc::SYS_vhangup,
            libc::SYS_nfsservctl,
            libc::SYS_personality,
        ],
    ),
    (
        "reads keys that the kernel keeps for the user",
        &[libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl],
    ),
    (
        "does other calls where no filter sees them",
        &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register],
    ),
    (
        "talks to any process of the user by a key that no rule about files holds",
        &[
            libc::SYS_shmget,
            libc::SYS_shmat,
            libc::SYS_shmctl,
            libc::SYS_semget,
            libc::SYS_semctl,
            libc::SYS_semtimedop,
            libc::SYS_msgget,
            libc::SYS_msgsnd,
            libc::SYS_msgrcv,
            libc::SYS_msgctl,
            libc::SYS_mq_open,
            libc::SYS_mq_unlink,
        ],
    ),
];

/// Numbers of x86-64 alone: ports of the machine, and tables of the processor.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// New namespaces of `clone`, all of them.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

/// Commands that type text into a terminal, as if the user had: `TIOCSTI` and `TIOCLINUX`. Source:
/// `asm-generic/ioctls.h` of Linux.
const TYPES: [u64; 2] = [0x5412, 0x541c];

/// Families of sockets that an open network has: the internet, and the routes to it.
const FAMILIES: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Why there is no filter.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    #[error("there is no filter of system calls for this processor")]
    Processor,
    #[error("the filter of system calls cannot be made: {0}")]
    Make(#[from] seccompiler::BackendError),
    #[error("the filter of system calls is not taken: {0}")]
    Apply(#[from] seccompiler::Error),
}

/// Installs the filters for the calling thread and what it starts.
pub(super) fn filter(network: SandboxNetwork) -> Result<(), FilterError> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let whole = REFUSED.iter().flat_map(|it| it.1).chain(REFUSED_HERE);
    refused.extend(whole.map(|&call| (call, Vec::new())));
    let namespaces = (0..u64::BITS).map(|bit| 1 << bit).filter(|bit| NAMESPACES & bit != 0);
    let clones = namespaces.map(|bit| when(0, Is::MaskedEq(bit), bit));
    refused.insert(libc::SYS_clone, clones.collect::<Result<_, _>>()?);
    let types = TYPES.into_iter().map(|it| when(1, Is::Eq, it));
    refused.insert(libc::SYS_ioctl, types.collect::<Result<_, _>>()?);
    let sockets = match network {
        SandboxNetwork::Off => Vec::new(),
        // Where only some hosts are reached, the network itself is another.
        SandboxNetwork::Open | SandboxNetwork::Listed => {
            let others = FAMILIES.map(|it| condition(0, Is::Ne, it as u64));
            vec![SeccompRule::new(others.into_iter().collect::<Result<_, _>>()?)?]
        }
    };
    refused.insert(libc::SYS_socket, sockets);
    #[cfg(target_arch = "x86_64")]
    {
        let same: Vec<_> =
            refused.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
        refused.extend(same);
        refused.extend(ONLY_X32.map(|call| (call | X32, Vec::new())));
    }
    apply(refused, libc::EPERM)?;
    // Its flags are where no filter sees them. A C library goes on with `clone` where there is none.
    apply(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
}

fn apply(refused: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<(), FilterError> {
    let processor =
        TargetArch::try_from(std::env::consts::ARCH).map_err(|_| FilterError::Processor)?;
    let (allowed, refusal) = (SeccompAction::Allow, SeccompAction::Errno(errno.unsigned_abs()));
    let filter = SeccompFilter::new(refused, allowed, refusal, processor)?;
    let program = BpfProgram::try_from(filter)?;
    Ok(apply_filter(&program)?)
}

fn when(argument: u8, is: Is, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![condition(argument, is, value)?])
}

fn condition(
    argument: u8,
    is: Is,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, Length::Dword, is, value)
}
