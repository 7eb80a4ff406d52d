use crate::support::Folder;

#[test]
fn every_workload_is_measured_and_nothing_is_left_behind() {
    let folder = Folder::new();
    let args = ["bench", "--seconds", "1", "--tasks", "8", "--json"];
    let lines = folder.run(&args).json_lines();
    let names: Vec<&str> = lines.iter().map(|line| line["workload"].as_str().expect("a name")).collect();
    assert_eq!(names.len(), 4);
    assert!(names[0].starts_with("append, one writer") && names[1].contains("8 tasks"), "{names:?}");
    assert!(lines.iter().all(|line| line["perSecond"].as_f64() > Some(0.0)), "{lines:?}");
    assert!(folder.run(&["sessions", "list", "--json"]).json_lines().is_empty());
    let report = folder.run(&["db", "check", "--json"]).json_lines().remove(0);
    assert_eq!((&report["apps"], &report["users"]), (&0.into(), &0.into()), "{report}");
    let table = folder.run(&["bench", "--seconds", "1", "--store", "memory://"]).ok();
    assert!(table.contains("64 tasks"), "{table}");
}
