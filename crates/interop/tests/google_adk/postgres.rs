//! Databases of the PostgreSQL that `./test` starts.

use tokio_postgres::NoTls;

/// The URL of a new, empty database.
pub(crate) async fn new_database() -> String {
    let server = std::env::var("SESSILE_TEST_POSTGRES")
        .expect("SESSILE_TEST_POSTGRES names a PostgreSQL; `./test` starts one, or set it to postgresql://user@host/database");
    let name = format!("interop_{}", uuid::Uuid::new_v4().simple());
    let (client, connection) = tokio_postgres::connect(&server, NoTls).await.expect("the server is reached");
    tokio::spawn(connection);
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("the database is created");
    let (before, _) = server.rsplit_once('/').expect("the URL names a database");
    format!("{before}/{name}")
}
