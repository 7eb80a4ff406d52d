//! The user of the operating system, whom the history of state names as the author of a change.

/// The name of the user that runs this command; `None` if it is not known.
pub(crate) fn os_user() -> Option<String> {
    let named = || {
        let names = ["LOGNAME", "USER", "USERNAME"].into_iter().filter_map(std::env::var_os);
        names.filter_map(|name| name.into_string().ok()).find(|name| !name.is_empty())
    };
    of_process().or_else(named)
}

/// The name from `/etc/passwd` for the user id of this process. Unlike the environment, it cannot
/// be set by the user.
#[cfg(target_os = "linux")]
fn of_process() -> Option<String> {
    use std::os::unix::fs::MetadataExt;

    let id = std::fs::metadata("/proc/self").ok()?.uid().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    Some(name.unwrap_or_else(|| format!("uid {id}")))
}

#[cfg(not(target_os = "linux"))]
fn of_process() -> Option<String> {
    None
}
