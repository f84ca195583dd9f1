//! What the sessions of a tenant keep off on the disk of a server: what the server keeps, and the directories of other tenants.

use crate::step7_permission_gate::path_rule::escape;

/// Where the server and a session of it have their files. Each list names a place as it is written and, if that is
/// another path, as it really is. All paths are absolute.
///
/// ```
/// use ennead_runtime::serve::closed_places::ClosedPlaces;
///
/// let places = ClosedPlaces {
///     closed: vec!["/host/state".into(), "/host/desks".into()],
///     open: vec!["/host/desks/acme".into()],
/// };
/// assert_eq!(
///     places.rules(),
///     ["Read(//host/state:!//host/desks/acme)", "Read(//host/desks:!//host/desks/acme)"]
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosedPlaces {
    /// Directories that no call may read or change, with all that is in them.
    pub closed: Vec<String>,
    /// What lies in these and is the session's own.
    pub open: Vec<String>,
}

impl ClosedPlaces {
    /// Returns deny rules that close them. A `Read` deny rule also stops changes.
    pub fn rules(&self) -> Vec<String> {
        let open: String = self.open.iter().map(|it| format!(":!/{it}")).collect();
        let rule = |it: &String| format!("Read(/{}{open})", escape(it));
        self.closed.iter().map(rule).collect()
    }
}
