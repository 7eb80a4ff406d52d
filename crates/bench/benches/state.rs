//! The operations of `State`. For the comparison with other libraries see `bench/peers`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Map, Value, json};
use sessile_state::{State, Template};

/// A state with 100 keys of the usual kinds, and a large object.
fn usual() -> State {
    let state = State::new();
    for n in 0..20 {
        state.set(format!("app:setting_{n}"), n);
        state.set(format!("user:preference_{n}"), "some text");
        state.set(format!("field_{n}"), n * 2);
        state.set(format!("turn:note_{n}"), "some text");
        state.set(format!("derived:score_{n}"), 0.5);
    }
    state.set("turn_count", 5u32);
    let large: Map<String, Value> =
        (0..100).map(|id| (format!("item_{id}"), json!({"id": id, "tags": ["a", "b"]}))).collect();
    state.set("large", large);
    state
}

fn thousand() -> State {
    let state = State::new();
    state.update((0..980).map(|n| (format!("some_key_{n}"), n)));
    state.update((0..20).map(|n| (format!("app:setting_{n}"), n)));
    state
}

fn reads(criterion: &mut Criterion) {
    let (state, thousand) = (usual(), thousand());
    let mut group = criterion.benchmark_group("read");
    group.bench_function("get", |b| b.iter(|| state.get::<u32>(black_box("turn_count"))));
    group.bench_function("with", |b| b.iter(|| state.with(black_box("turn_count"), Value::as_u64)));
    group.bench_function("derived fallback", |b| b.iter(|| state.get::<f64>(black_box("score_7"))));
    group.bench_function("scoped get", |b| b.iter(|| state.app().get::<u32>(black_box("setting_7"))));
    group.bench_function("get_raw of 100 items", |b| b.iter(|| state.get_raw(black_box("large"))));
    group.bench_function("get of 100 items", |b| {
        b.iter(|| state.get::<Map<String, Value>>(black_box("large")))
    });
    group.bench_function("scope keys, 20 of 1000", |b| b.iter(|| thousand.app().keys()));
    group.bench_function("snapshot of 1000 keys", |b| b.iter(|| thousand.snapshot()));
    group.bench_function("to_map of 1000 keys", |b| b.iter(|| thousand.to_map()));
    group.finish();
}

fn writes(criterion: &mut Criterion) {
    let (state, thousand) = (usual(), thousand());
    let mut group = criterion.benchmark_group("write");
    group.bench_function("set", |b| b.iter(|| state.set(black_box("turn_count"), black_box(7u32))));
    group.bench_function("set text", |b| {
        b.iter(|| state.set(black_box("user:preference_3"), black_box("other text")))
    });
    group.bench_function("modify", |b| {
        b.iter(|| state.modify(black_box("turn_count"), 0u32, |n| n.wrapping_add(1)))
    });
    group.bench_function("delta view of 10 writes, committed", |b| {
        b.iter(|| {
            let view = state.with_delta_tracking();
            (0..10).for_each(|n| view.set(format!("field_{n}"), n));
            view.commit();
        });
    });
    group.bench_function("set after a snapshot of 1000 keys", |b| {
        b.iter(|| {
            let before = thousand.snapshot();
            thousand.set("some_key_3", 1);
            before
        });
    });
    group.finish();
}

fn templates(criterion: &mut Criterion) {
    let state = usual();
    let text =
        "Settings {app:setting_1}, {app:setting_2}; {user:preference_1} {missing?} {{literal}} ".repeat(10);
    let template = Template::parse(&*text);
    let mut group = criterion.benchmark_group("template");
    group.bench_function("parse 50 placeholders and escapes", |b| {
        b.iter(|| Template::parse(black_box(&*text)))
    });
    group.bench_function("render 50 placeholders and escapes", |b| b.iter(|| template.render(&state)));
    group.finish();
}

criterion_group!(benches, reads, writes, templates);
criterion_main!(benches);
