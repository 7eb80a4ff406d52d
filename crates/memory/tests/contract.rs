//! The contract of memory services, on all of them.

use std::sync::Arc;

use sessile_memory::{InMemoryMemory, MemoryEntry, MemoryService, SqliteMemory};
use sessile_session::{
    Content, CreateSession, Event, EventWindow, MemoryStore, Part, Session, SessionService,
};
use tempfile::TempDir;

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Service = Arc<dyn MemoryService>;

/// Makes of each function one test for each service.
macro_rules! on_every_service {
    ($($name:ident),* $(,)?) => {
        mod in_memory {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() -> super::Outcome {
                super::$name(std::sync::Arc::new(super::InMemoryMemory::new())).await
            })*
        }

        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() -> super::Outcome {
                let folder = super::TempDir::new()?;
                let memory = super::SqliteMemory::open(folder.path().join("memory.db")).await?;
                super::$name(std::sync::Arc::new(memory)).await
            })*
        }
    };
}

on_every_service!(
    what_was_said_is_found_by_a_word_of_it,
    an_entry_says_who_and_when,
    the_best_match_comes_first,
    nothing_is_found_where_nothing_matches,
    memories_belong_to_an_app_and_a_user,
    a_session_that_is_added_again_is_not_there_twice,
    adding_a_part_of_a_session_forgets_nothing,
    reasoning_and_calls_are_not_searched,
    words_are_found_in_any_case_and_language,
    hostile_queries_find_what_their_words_say,
    hostile_texts_are_remembered,
    many_add_and_search_at_once,
);

/// Sessions to remember.
struct Talks(SessionService);

impl Talks {
    fn new() -> Self {
        Self(SessionService::new(MemoryStore::new()))
    }

    /// A session of this user in which these things were said.
    async fn session(&self, user: &str, id: &str, said: &[&str]) -> Session {
        let new = CreateSession::new("app", user).with_id(id);
        let mut session = self.0.create(new).await.expect("a session");
        for (n, text) in said.iter().enumerate() {
            let event = Event {
                id: format!("{id}-{n}"),
                timestamp: Some(1_705_312_800.0 + n as f64),
                ..Event::new("user").with_content(Content::text("user", *text))
            };
            self.0.append(&mut session, event).await.expect("an event");
        }
        session
    }
}

fn texts(found: &[MemoryEntry]) -> Vec<&str> {
    let parts = found.iter().flat_map(|entry| entry.content.parts());
    parts.filter_map(|part| part.text.as_deref()).collect()
}

async fn what_was_said_is_found_by_a_word_of_it(memory: Service) -> Outcome {
    let talks = Talks::new();
    memory
        .add_session(&talks.session("ada", "s", &["I like green tea.", "My cat is called Grace."]).await)
        .await?;
    let found = memory.search("app", "ada", "What is the name of the cat?").await?;
    assert!(texts(&found).contains(&"My cat is called Grace."));
    assert_eq!(texts(&memory.search("app", "ada", "TEA").await?), ["I like green tea."]);
    Ok(())
}

async fn an_entry_says_who_and_when(memory: Service) -> Outcome {
    memory.add_session(&Talks::new().session("ada", "s", &["hello"]).await).await?;
    let found = memory.search("app", "ada", "hello").await?;
    let [entry] = &found[..] else { panic!("one entry, not {found:?}") };
    assert_eq!(entry.content, Content::text("user", "hello"));
    assert_eq!(entry.author.as_deref(), Some("user"));
    assert_eq!(entry.timestamp.as_deref(), Some("2024-01-15T10:00:00+00:00"));
    assert!(entry.id.is_some());
    Ok(())
}

async fn the_best_match_comes_first(memory: Service) -> Outcome {
    let said = ["the red car", "the blue boat", "a red boat of wood", "a house"];
    memory.add_session(&Talks::new().session("ada", "s", &said).await).await?;
    let found = memory.search("app", "ada", "red boat").await?;
    assert_eq!(texts(&found)[0], "a red boat of wood");
    assert_eq!(found.len(), 3);
    Ok(())
}

async fn nothing_is_found_where_nothing_matches(memory: Service) -> Outcome {
    assert_eq!(memory.search("app", "ada", "anything").await?, []);
    memory.add_session(&Talks::new().session("ada", "s", &["hello there"]).await).await?;
    for query in ["goodbye", "", "  ", "?!", "hell", "\0"] {
        assert_eq!(memory.search("app", "ada", query).await?, [], "{query:?}");
    }
    Ok(())
}

async fn memories_belong_to_an_app_and_a_user(memory: Service) -> Outcome {
    let talks = Talks::new();
    memory.add_session(&talks.session("ada", "s", &["secret plan"]).await).await?;
    memory.add_session(&talks.session("bob", "s", &["secret recipe"]).await).await?;
    assert_eq!(texts(&memory.search("app", "ada", "secret").await?), ["secret plan"]);
    assert_eq!(memory.search("other", "ada", "secret").await?, []);
    assert_eq!(memory.search("app", "eve", "secret").await?, []);
    Ok(())
}

async fn a_session_that_is_added_again_is_not_there_twice(memory: Service) -> Outcome {
    let talks = Talks::new();
    let mut session = talks.session("ada", "s", &["one sheep"]).await;
    memory.add_session(&session).await?;
    let event = Event::new("user").with_content(Content::text("user", "two sheep"));
    talks.0.append(&mut session, event).await?;
    memory.add_session(&session).await?;
    memory.add_session(&session).await?;
    assert_eq!(memory.search("app", "ada", "sheep").await?.len(), 2);
    Ok(())
}

async fn adding_a_part_of_a_session_forgets_nothing(memory: Service) -> Outcome {
    let talks = Talks::new();
    let session = talks.session("ada", "s", &["one sheep", "two sheep"]).await;
    memory.add_session(&session).await?;
    let last = talks.0.get(session.key(), EventWindow::last(1)).await?.expect("it exists");
    memory.add_session(&last).await?;
    assert_eq!(memory.search("app", "ada", "sheep").await?.len(), 2);
    Ok(())
}

async fn reasoning_and_calls_are_not_searched(memory: Service) -> Outcome {
    let talks = Talks::new();
    let mut session = talks.session("ada", "s", &[]).await;
    let thought = Part { thought: Some(true), ..Part::text("perhaps a dragon") };
    let parts = vec![thought, Part::text("It is a lizard.")];
    let content = Content { role: Some("model".to_owned()), parts: Some(parts), ..Content::default() };
    talks.0.append(&mut session, Event::new("zoo").with_content(content.clone())).await?;
    talks.0.append(&mut session, Event::new("zoo")).await?;
    memory.add_session(&session).await?;
    assert_eq!(memory.search("app", "ada", "dragon").await?, []);
    assert_eq!(memory.search("app", "ada", "lizard").await?[0].content, content, "it is kept whole");
    Ok(())
}

async fn words_are_found_in_any_case_and_language(memory: Service) -> Outcome {
    let said = ["私はPythonを使う", "ÉCOLE de cafe\u{301}", "Straße nach ΣΊΣΥΦΟΣ", "İstanbul'da"];
    memory.add_session(&Talks::new().session("ada", "s", &said).await).await?;
    for (query, expected) in [
        ("python", said[0]),
        ("école", said[1]),
        ("CAFÉ", said[1]),
        ("straße", said[2]),
        ("σίσυφος", said[2]),
        ("İstanbul", said[3]),
    ] {
        assert_eq!(texts(&memory.search("app", "ada", query).await?), [expected], "{query}");
    }
    Ok(())
}

async fn hostile_queries_find_what_their_words_say(memory: Service) -> Outcome {
    memory.add_session(&Talks::new().session("ada", "s", &["alpha beta", "gamma"]).await).await?;
    for query in [
        "alpha\"",
        "\"alpha",
        "alpha*",
        "alpha AND",
        "NOT alpha",
        "alpha NEAR(",
        "search_text:alpha",
        "^alpha",
        "alpha) OR (",
        "'; DROP TABLE memory_events; -- alpha",
        "%alpha%",
        "alpha\0",
        "{alpha}",
        "-alpha",
        "alpha + ",
    ] {
        assert_eq!(texts(&memory.search("app", "ada", query).await?), ["alpha beta"], "{query}");
    }
    let long = format!("gamma {}", (0..20_000).map(|n| format!("word{n} ")).collect::<String>());
    assert_eq!(texts(&memory.search("app", "ada", &long).await?), ["gamma"]);
    let one = format!("gamma {}", "x".repeat(1_000_000));
    assert_eq!(texts(&memory.search("app", "ada", &one).await?), ["gamma"]);
    Ok(())
}

async fn hostile_texts_are_remembered(memory: Service) -> Outcome {
    let long = format!("needle {}", "hay ".repeat(100_000));
    let said = ["quoted \"needle\" '", long.as_str(), "needle {\"json\": 1}", "needle\u{202e}\u{7}"];
    memory.add_session(&Talks::new().session("ada", "s", &said).await).await?;
    let found = memory.search("app", "ada", "needle").await?;
    let mut found = texts(&found);
    found.sort_unstable();
    let mut said = said.to_vec();
    said.sort_unstable();
    assert_eq!(found, said);
    Ok(())
}

async fn many_add_and_search_at_once(memory: Service) -> Outcome {
    let talks = Arc::new(Talks::new());
    let adding = (0..20).map(|n| {
        let (memory, talks) = (memory.clone(), talks.clone());
        tokio::spawn(async move {
            let session = talks.session("ada", &format!("s{n}"), &[&format!("number{n} of many")]).await;
            memory.add_session(&session).await?;
            memory.search("app", "ada", &format!("number{n}")).await
        })
    });
    for (n, task) in adding.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(texts(&task.await??), [format!("number{n} of many")]);
    }
    assert!(memory.search("app", "ada", "many").await?.len() >= 10);
    Ok(())
}
