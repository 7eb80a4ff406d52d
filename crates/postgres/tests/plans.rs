//! Which indexes the statements of the commit path use while the tables have no statistics, as in a
//! new database.

mod support;

use std::time::Duration;

use serde_json::json;
use sessile_session::{CreateSession, Event, EventActions, SessionService};
use support::{connect, new_schema};
use tokio_postgres::NoTls;

const EVENTS: i64 = 50;

/// How often each index of the sessions and events was used. Connections report it when they have
/// been idle for a while, or end.
const USED: &str = "
    SELECT indexrelname::text, idx_scan FROM pg_stat_user_indexes
     WHERE schemaname = current_schema() AND relname IN ('sessions', 'events')
";

/// Without statistics all indexes seem to cost the same to the planner, and one that does not have
/// the whole key reads the whole history of a session, or all sessions of an application, for every
/// append.
#[tokio::test]
async fn an_append_finds_its_rows_by_their_primary_keys_in_a_new_database() {
    let url = new_schema().await;
    let service = SessionService::new(connect(&url).await);
    let mut session = service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    for n in 0..EVENTS {
        let actions = EventActions::from_delta(json!({"n": n, "user:n": n, "app:n": n}));
        service.append(&mut session, Event::new("agent").with_actions(actions)).await.unwrap();
    }
    service.close().await.unwrap();

    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..200 {
        let rows = client.query(USED, &[]).await.unwrap();
        let used = |name: &str| -> i64 {
            let row = rows.iter().find(|row| row.get::<_, &str>(0) == name);
            row.unwrap_or_else(|| panic!("there is no index {name}")).get(1)
        };
        if used("events_pkey") >= EVENTS && used("sessions_pkey") >= EVENTS {
            for other in ["sessile_sessions_of_user", "sessile_sessions_of_app", "sessile_events_seq"] {
                assert!(used(other) < EVENTS / 2, "{other} was used {} times", used(other));
            }
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("appends do not use the primary keys");
}
