//! What happens to every request before its handler, and to every answer after it.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::auth::Principal;
use crate::server::Shared;

pub(crate) async fn front(State(_shared): State<Shared>, mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Principal::anyone());
    next.run(request).await
}
