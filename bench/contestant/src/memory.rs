//! What this process holds in memory, as the kernel counts it.

/// Bytes in memory now, and the most there ever were.
pub(crate) struct Resident {
    pub(crate) now: usize,
    pub(crate) peak: usize,
}

pub(crate) fn resident() -> Resident {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells about this process");
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<usize>().ok());
        number.expect("the kernel counts pages in kilobytes") * 1024
    };
    Resident { now: kilobytes("VmRSS:"), peak: kilobytes("VmHWM:") }
}
