//! The user of the operating system, who is named in the history of what a command changes.

/// The name of the user that runs this command; `None` if the operating system does not tell.
pub(crate) fn os_user() -> Option<String> {
    let named = || {
        let names = ["LOGNAME", "USER", "USERNAME"].into_iter().filter_map(std::env::var_os);
        names.filter_map(|name| name.into_string().ok()).find(|name| !name.is_empty())
    };
    of_process().or_else(named)
}

/// The name that the system's own list has for the user of this process. The environment could name
/// another one.
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
