//! Which indexes the statements of the commit path use while the tables have no statistics, as in a
//! new database.

mod support;

use std::time::Duration;

use serde_json::json;
use sessile_session::{CreateSession, Event, EventActions, ListSessions, SessionService};
use support::{connect, new_schema, sql};
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

/// The indexes of lists have a condition, which the statement of a list must repeat to be able to
/// use them.
#[tokio::test]
async fn a_page_of_a_list_is_read_in_the_order_of_an_index() {
    let url = new_schema().await;
    let service = SessionService::new(connect(&url).await);
    let many = "
        INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time, sessile_initial)
        SELECT 'shop', 'u' || n % 20, 's' || n, '{}', now(), now() + n * interval '1 second', '{}'
          FROM generate_series(1, 5000) n;
        ANALYZE sessions";
    sql(&url, many).await;
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let list = |user: Option<&str>| ListSessions {
        app: "shop".to_owned(),
        user: user.map(str::to_owned),
        page_size: 10,
        ..ListSessions::default()
    };
    for user in [Some("u7"), None] {
        let page = service.list(&list(user)).await.unwrap();
        assert_eq!(page.sessions.len(), 10);
    }
    service.close().await.unwrap();
    for _ in 0..200 {
        let rows = client.query(USED, &[]).await.unwrap();
        let used =
            |name: &str| rows.iter().any(|row| row.get::<_, &str>(0) == name && row.get::<_, i64>(1) > 0);
        if used("sessile_sessions_of_user") && used("sessile_sessions_of_app") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("a list does not use its index");
}
