//! Templates: the grammar case by case, errors, and properties.

use proptest::prelude::*;
use serde_json::json;
use sessile_state::{PlaceholderKind, State, Template, TemplateError};

fn state() -> State {
    State::from_iter([
        ("name", json!("Bob")),
        ("app:x", json!("an app value")),
        ("user:y", json!(1.0)),
        ("temp:t", json!(true)),
        ("nothing", json!(null)),
        ("items", json!(["a", {"b": 1}])),
        ("tricky", json!("{name} {{name}} {missing}")),
        ("derived:risk", json!("low")),
        ("имя", json!("Боб")),
        ("नमस्ते", json!("hi")),
    ])
}

#[track_caller]
fn renders(template: &str, expected: &str) {
    assert_eq!(Template::parse(template).render(&state()).as_deref(), Ok(expected), "{template}");
}

#[test]
fn placeholders() {
    renders("Hello {name}!", "Hello Bob!");
    renders("{ name }{name?}{ name? }", "BobBobBob");
    renders("{\n name \n}", "Bob");
    renders("{app:x} {user:y} {temp:t}", "an app value 1.0 true");
    renders("[{missing?}][{user:missing?}]", "[][]");
    renders("{имя} {नमस्ते}", "Боб hi");
    renders("{risk}", "low");
}

#[test]
fn values_print_as_text_nothing_or_json() {
    renders("{nothing}|{items}|{temp:t}", r#"|["a",{"b":1}]|true"#);
}

#[test]
fn doubled_braces_are_literal() {
    renders("{{name}}", "{name}");
    renders("{{{name}}}", "{Bob}");
    renders("{{not a state variable}}", "{not a state variable}");
    renders(
        "This is a {name} instruction with {{literal_braces}}.",
        "This is a Bob instruction with {literal_braces}.",
    );
    renders("}} and {{", "} and {");
    renders("{{name}", "{name}");
    renders("{name}}", "Bob}");
    renders(r#"{{"a": 1}}"#, r#"{"a": 1}"#);
}

#[test]
fn json_and_code_around_placeholders_stay_whole() {
    renders(r#"{"n": {name}}"#, r#"{"n": Bob}"#);
    renders(r#"{"a": {"b": {"c": "{name}"}}}"#, r#"{"a": {"b": {"c": "Bob"}}}"#);
    renders("fn main() { if x { y() }}", "fn main() { if x { y() }}");
    renders("{a{name}b}", "{aBobb}");
    renders(r#"[{"a":{}},{"b":{}}]"#, r#"[{"a":{}},{"b":{}}]"#);
}

#[test]
fn anything_else_between_braces_stays() {
    for text in [
        "${name}",
        r"\{name}",
        "${{name}}",
        "{a.b}",
        "{a-b}",
        "{1x}",
        "{}",
        "{?}",
        "{name??}",
        "{name ?}",
        "{foo:bar}",
        "{app:x:y}",
        "{user: y}",
        "{APP:x}",
        "{app:}",
        "{state.name}",
        "{artifact.}",
        r#"{"json": 1}"#,
        "{",
        "}",
        "{ {",
        "a { b",
    ] {
        renders(text, text);
    }
}

#[test]
fn values_are_not_expanded_again() {
    renders("<{tricky}>", "<{name} {{name}} {missing}>");
}

#[test]
fn a_missing_key_is_an_error_with_position_and_nearest_key() {
    let error = Template::parse("first line\nüber {nmae}").render(&state()).unwrap_err();
    let TemplateError::MissingKey { key, position, nearest } = &error else { panic!("{error}") };
    assert_eq!((key.as_str(), position.line, position.column, position.offset), ("nmae", 2, 6, 17));
    assert_eq!(nearest.as_deref(), Some("name"));
    assert_eq!(
        error.to_string(),
        "the state has no key `nmae` for the placeholder at line 2, column 6; did you mean `name`? \
         Set the key, or write {nmae?} if it may be absent"
    );
    assert_eq!(
        Template::parse("{something_else}").render(&state()).unwrap_err().to_string(),
        "the state has no key `something_else` for the placeholder at line 1, column 1. \
         Set the key, or write {something_else?} if it may be absent"
    );
}

#[test]
fn artifacts_come_from_the_caller() {
    let template = Template::parse("{artifact.notes v1.txt} {artifact.absent?} {name}");
    let notes = |name: &str| (name == "notes v1.txt").then(|| "the {name} notes".to_owned());
    assert_eq!(template.render_with_artifacts(&state(), notes).as_deref(), Ok("the {name} notes  Bob"));
    assert!(matches!(template.render(&state()), Err(TemplateError::NoArtifacts { .. })));
    assert_eq!(
        Template::parse("{artifact.a.md}").render_with_artifacts(&state(), |_| None).unwrap_err().to_string(),
        "there is no artifact `a.md` for the placeholder at line 1, column 1. \
         Save it, or write {artifact.a.md?} if it may be absent"
    );
}

#[test]
fn validate_lists_all_placeholders() {
    let template = Template::parse("{name} {gone} {maybe?} {artifact.f} {user name} {{x}}");
    let checked = template.validate(&state());
    let summary: Vec<_> =
        checked.iter().map(|c| (c.placeholder.name.as_str(), c.found, c.placeholder.optional)).collect();
    assert_eq!(
        summary,
        [("name", true, false), ("gone", false, false), ("maybe", false, true), ("f", false, false)]
    );
    assert_eq!(checked[3].placeholder.kind, PlaceholderKind::Artifact);
    assert_eq!(template.placeholders().count(), 4);
    assert_eq!(template.ignored().len(), 1);
    assert_eq!(
        (template.ignored()[0].text.as_str(), template.ignored()[0].position.column),
        ("user name", 37)
    );
}

#[test]
fn renders_against_states_views_snapshots_and_maps() {
    let template = Template::parse("{name}");
    let state = state();
    let view = state.with_delta_tracking();
    view.set("name", "Eve");
    assert_eq!(template.render(&view).as_deref(), Ok("Eve"));
    assert_eq!(template.render(state.snapshot()).as_deref(), Ok("Bob"));
    assert_eq!(template.render(&state.to_map()).as_deref(), Ok("Bob"));
    assert_eq!(template.source(), "{name}");
}

#[test]
fn cost_grows_with_the_text_only() {
    let braces = "{".repeat(200_000) + &"}".repeat(200_000);
    assert_eq!(Template::parse(&*braces).placeholders().count(), 0);
    let many = "{a?}\n".repeat(50_000);
    assert_eq!(Template::parse(&*many).placeholders().last().map(|p| p.position.line), Some(50_000));
}

proptest! {
    #[test]
    fn no_text_panics(text in "[{}$\\\\a:?. \n]{0,40}|.*") {
        let template = Template::parse(text);
        template.validate(&state());
        let _rendered_or_refused = template.render(&state()).is_ok();
    }

    #[test]
    fn text_without_braces_is_itself(text in "[^{}]*") {
        prop_assert_eq!(Template::parse(&*text).render(&State::new()), Ok(text));
    }

    #[test]
    fn escaped_text_is_itself(text in "[{}a ]{0,20}|.*") {
        // `$` and `\` before a brace switch placeholders off, and escapes with them.
        let text = text.replace(['$', '\\'], "");
        let escaped = text.replace('{', "{{").replace('}', "}}");
        prop_assert_eq!(Template::parse(escaped).render(&State::new()), Ok(text));
    }

    #[test]
    fn a_value_comes_out_exactly_as_it_is(value in ".*", before in "[^{}$\\\\]*", after in "[^{}]*") {
        let state = State::new();
        state.set("k", &value);
        let rendered = Template::parse(format!("{before}{{k}}{after}")).render(&state);
        prop_assert_eq!(rendered, Ok(format!("{before}{value}{after}")));
    }
}
