//! A PostgreSQL for tests.

use sessile_postgres::PostgresStore;
use tokio_postgres::NoTls;

/// The server that `./test` starts.
pub(crate) fn server() -> String {
    std::env::var("SESSILE_TEST_POSTGRES")
        .expect("SESSILE_TEST_POSTGRES names a PostgreSQL; `./test` starts one, or set it to postgresql://user@host/database")
}

/// The URL of a new, empty schema.
pub(crate) async fn new_schema() -> String {
    let name = format!("test_{}", uuid::Uuid::new_v4().simple());
    sql(&server(), &format!("CREATE SCHEMA {name}")).await;
    let server = server();
    let separator = if server.contains('?') { '&' } else { '?' };
    format!("{server}{separator}options=-csearch_path%3D{name}")
}

pub(crate) async fn connect(url: &str) -> PostgresStore {
    PostgresStore::connect_url(url).await.expect("the database can be used")
}

/// Runs statements, as another program would.
pub(crate) async fn sql(url: &str, statements: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server is reached");
    let connection = tokio::spawn(connection);
    client.batch_execute(statements).await.expect("the statements run");
    drop(client);
    connection.await.expect("the connection's task ends").expect("the connection closes");
}
