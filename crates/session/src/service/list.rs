use super::SessionService;
use crate::error::SessionError;
use crate::key::{check_app, check_user};
use crate::page::{ListPlace, ListQuery, Unreadable};
use crate::session::Session;

/// Which sessions are listed.
#[derive(Debug, Clone, Default)]
pub struct ListSessions {
    /// Of this application.
    pub app: String,
    /// Of this user only.
    pub user: Option<String>,
    /// At most this many on a page; 100 if it is zero.
    pub page_size: usize,
    /// The token of the previous page.
    pub page_token: Option<String>,
    /// The most recently changed first; otherwise last.
    pub newest_first: bool,
}

/// Some of the sessions, with their state and without their events.
#[derive(Debug)]
pub struct Page {
    /// The sessions.
    pub sessions: Vec<Session>,
    /// Those that belong on this page and cannot be read, each with the row that is corrupt.
    pub unreadable: Vec<Unreadable>,
    /// The token of the next page, if there is one.
    pub next: Option<String>,
}

/// What the states on a page may take as JSON: as much as the largest request of the server.
const MAX_PAGE_BYTES: usize = 16 << 20;

impl SessionService {
    /// Lists sessions page by page, in the order of their last change.
    ///
    /// A page ends early, with a token for the next one, when the states on it reach about 16 MiB
    /// as JSON. A session that cannot be decoded is listed in [`Page::unreadable`], and does not
    /// affect the others.
    ///
    /// # Errors
    ///
    /// - [`SessionError::InvalidCursor`] if the token is not from a list;
    /// - [`SessionError::InvalidId`] if it cannot be an application or user.
    pub async fn list(&self, list: &ListSessions) -> Result<Page, SessionError> {
        check_app(&list.app)?;
        list.user.as_deref().map(check_user).transpose()?;
        let size = if list.page_size == 0 { 100 } else { list.page_size.min(10_000) };
        let query = ListQuery {
            app: list.app.clone(),
            user: list.user.clone(),
            limit: size,
            max_bytes: MAX_PAGE_BYTES,
            after: list.page_token.as_deref().map(parse).transpose()?,
            newest_first: list.newest_first,
        };
        let stored = self.store.list(&query).await?;
        Ok(Page {
            sessions: stored.sessions.into_iter().map(Session::from).collect(),
            unreadable: stored.unreadable,
            next: stored.next.map(|place| token(place.update_time, &place.user, &place.id)),
        })
    }
}

/// A place as a token: the bits of the time, so that no digit is lost, and the two ids as JSON.
fn token(update_time: f64, user: &str, id: &str) -> String {
    serde_json::json!([update_time.to_bits(), user, id]).to_string()
}

fn parse(token: &str) -> Result<ListPlace, SessionError> {
    let (bits, user, id) =
        serde_json::from_str::<(u64, String, String)>(token).map_err(|_| SessionError::InvalidCursor)?;
    let update_time = f64::from_bits(bits);
    if !update_time.is_finite() || user.contains('\0') || id.contains('\0') {
        return Err(SessionError::InvalidCursor);
    }
    Ok(ListPlace { update_time, user, id })
}
