//! The triggers that record what other programs write: `migrations/0003_foreign.sql` with its
//! placeholders filled in.

/// The SQL of migration 3, for both kinds of shared state.
pub(crate) fn migration() -> String {
    let of_app = Names { scope: "app", columns: &["app_name"] };
    let of_user = Names { scope: "user", columns: &["app_name", "user_id"] };
    of_app.fill() + &of_user.fill()
}

struct Names {
    scope: &'static str,
    /// The columns that name a row.
    columns: &'static [&'static str],
}

impl Names {
    fn fill(&self) -> String {
        let scope = self.scope;
        let key = |row: &str| self.columns.iter().map(|column| format!("{row}.{column}")).collect::<Vec<_>>();
        let is = |row: &str| {
            let equal = self.columns.iter().map(|column| format!("{column} = {row}.{column}"));
            equal.collect::<Vec<_>>().join(" AND ")
        };
        let changes = format!("sessile_{scope}_changes");
        let inserted = Rows { scope, old: None, new: Some("NEW.state") };
        let updated = Rows { scope, old: Some("OLD.state"), new: Some("NEW.state") };
        let deleted = Rows { scope, old: Some("OLD.state"), new: None };
        // The row before is not known if there is a history that does not end with a deletion.
        let replaced = format!(
            "(SELECT json_extract(changes, '$[0].deleted') IS NULL FROM {changes}
               WHERE {} ORDER BY version DESC LIMIT 1)",
            is("NEW")
        );
        let mut sql = include_str!("../migrations/0003_foreign.sql").to_owned();
        for (name, text) in [
            ("folded_insert", inserted.folded()),
            ("folded_update", updated.folded()),
            ("difference_insert", inserted.difference()),
            ("difference_update", updated.difference()),
            ("difference_delete", deleted.difference()),
            ("change_insert", inserted.change(&replaced)),
            ("change_update", updated.change("0")),
            ("change_delete", deleted.change("0")),
            ("changes", changes.clone()),
            ("table", format!("{scope}_states")),
            ("columns", self.columns.join(", ")),
            ("new_key", key("NEW").join(", ")),
            ("old_key", key("OLD").join(", ")),
            ("is_new", is("NEW")),
            ("is_old", is("OLD")),
            ("prefix", format!("{scope}:")),
            ("scope", scope.to_owned()),
        ] {
            sql = sql.replace(&format!("{{{name}}}"), &text);
        }
        sql
    }
}

/// The states that a trigger sees before and after a write; `None` if there is no row.
struct Rows {
    scope: &'static str,
    old: Option<&'static str>,
    new: Option<&'static str>,
}

impl Rows {
    /// The new state with the prefixes of its keys removed. Most states have none, and are not
    /// parsed for it.
    fn folded(&self) -> String {
        let (scope, keys) = (self.scope, self.keys(Digits::AsWritten));
        format!(
            "CASE WHEN instr(NEW.state, '\"{scope}:') > 0 AND {} THEN (
                SELECT json_group_object(name, json(after)) FROM ({keys}) WHERE after IS NOT NULL
             ) ELSE state END",
            is_object("NEW.state")
        )
    }

    /// One row: what was set and removed, and the values before.
    fn difference(&self) -> String {
        let keys = self.keys(Digits::Shortest);
        format!(
            "SELECT json_group_object(name, json(after)) FILTER (WHERE after IS NOT NULL) AS was_set,
                    json_group_array(name) FILTER (WHERE after IS NULL) AS removed,
                    json_group_object(name, json(before)) FILTER (WHERE before IS NOT NULL) AS before
               FROM ({keys}) WHERE after IS NOT before"
        )
    }

    /// The change as it is in the history, from the row `held` and the
    /// [`difference`](Self::difference). The state before is not known if `unknown` is true, or if
    /// a state is not a JSON object.
    fn change(&self, unknown: &str) -> String {
        let states = [self.old, self.new].into_iter().flatten();
        let unreadable: String = states.map(|state| format!(" OR NOT {}", is_object(state))).collect();
        let deleted = if self.new.is_none() { ", 'deleted', json('true')" } else { "" };
        format!(
            "json_array(json_object(
                'version', held.sessile_version,
                'time', round((julianday('now') - 2440587.5) * 86400.0, 3),
                'by', json_object('external', ''),
                'change', json_object('set', json(difference.was_set), 'remove', json(difference.removed)),
                'undo', CASE WHEN coalesce({unknown}, 0){unreadable} THEN json('{{\"unknown\":true}}')
                        ELSE json_object('before', json(difference.before)) END{deleted}))"
        )
    }

    /// A row for each key: its JSON before and after, NULL where it is absent. A key with its
    /// prefix is the same key as without. If a write left both, the one counts that it changed; if
    /// it changed both, the one without prefix.
    fn keys(&self, digits: Digits) -> String {
        let scope = self.scope;
        let part = |state: Option<&str>, is_new: u8| match state {
            Some(state) => self.entries(state, is_new, digits),
            None => "SELECT NULL, NULL, NULL, NULL WHERE 0".to_owned(),
        };
        let (old, new) = (part(self.old, 0), part(self.new, 1));
        let of = |is_new: u8, is_prefixed: u8| {
            format!("max(CASE WHEN is_new = {is_new} AND is_prefixed = {is_prefixed} THEN content END)")
        };
        format!(
            "SELECT name, coalesce(old_bare, old_prefixed) AS before,
                    CASE WHEN new_bare IS NULL THEN new_prefixed WHEN new_prefixed IS NULL THEN new_bare
                         WHEN new_prefixed IS NOT old_prefixed AND new_bare IS old_bare THEN new_prefixed
                         ELSE new_bare END AS after
               FROM (SELECT name, {} AS old_bare, {} AS old_prefixed, {} AS new_bare, {} AS new_prefixed
                       FROM (SELECT CASE WHEN is_prefixed THEN substr(key, {}) ELSE key END AS name,
                                    is_new, is_prefixed, content
                               FROM (SELECT NULL AS key, NULL AS is_new, NULL AS is_prefixed, NULL AS content WHERE 0
                                     UNION ALL {old} UNION ALL {new}))
                      GROUP BY name)",
            of(0, 0),
            of(0, 1),
            of(1, 0),
            of(1, 1),
            scope.len() + 2
        )
    }

    /// The keys of a state and the JSON of their values. A number or text that SQL cannot
    /// represent is cut out of the state's own text: `json_extract` of two paths
    /// gives a list of both. That takes as long as the state is, so it is done where it must be;
    /// whether texts need it is found once for the whole state.
    fn entries(&self, state: &str, is_new: u8, digits: Digits) -> String {
        let scope = self.scope;
        let length = scope.len() + 1;
        let cut = format!(
            "(SELECT substr(pair, 2, (length(pair) - 3) / 2)
                FROM (SELECT json_extract({state}, one.fullkey, one.fullkey) AS pair))"
        );
        let object = format!("CASE WHEN {} THEN {state} ELSE '{{}}' END", is_object(state));
        let is_short = match digits {
            Digits::Shortest => "one.type = 'real' AND abs(one.atom) <= 1.7976931348623157e308",
            Digits::AsWritten => "0",
        };
        format!(
            "SELECT one.key, {is_new}, substr(one.key, 1, {length}) = '{scope}:', CASE
                    WHEN one.type IN ('object', 'array') THEN one.value
                    WHEN one.type IN ('null', 'true', 'false') THEN one.type
                    WHEN one.type = 'text' AND whole.is_plain THEN json_quote(one.value)
                    WHEN typeof(one.atom) = 'integer' THEN CAST(one.atom AS TEXT)
                    WHEN {is_short} THEN CASE WHEN CAST(CAST(one.atom AS TEXT) AS REAL) = one.atom
                        THEN CAST(one.atom AS TEXT) ELSE printf('%!.17g', one.atom) END
                    WHEN json_type({state}, one.fullkey) IS NOT NULL THEN {cut}
                    WHEN one.type = 'text' THEN json_quote(one.value)
                    ELSE printf('%!.17g', one.atom) END
               FROM (SELECT instr({state}, '\\u0000') = 0 AND instr({state}, '\\ud') = 0 AS is_plain,
                            {object} AS object LIMIT 1) AS whole,
                    json_each(whole.object) AS one"
        )
    }
}

/// How floats are written as JSON.
#[derive(Clone, Copy)]
enum Digits {
    /// With the same digits as before: for a state that is stored.
    AsWritten,
    /// With as few digits as read back exactly, which is faster: for the history.
    Shortest,
}

/// Whether a state is a JSON object. A value that is not a text is not.
fn is_object(state: &str) -> String {
    format!("(coalesce(json_valid({state}), 0) AND json_type({state}) = 'object')")
}
