//! Golden frames: each message as it is written, and each as it is read.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use sessile_live::{
    ActivityHandling, Live, LiveBuilder, LiveError, LiveEvent, LiveTool, MediaResolution, Platform,
    Scheduling, Script, ScriptedServer, Sensitivity, TurnCoverage, VoiceDetection, WebSocket,
};
use sessile_session::Content;

use crate::common::{call, connect, turn_complete};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Query {
    /// What to look for.
    #[expect(dead_code, reason = "only its schema is looked at")]
    text: String,
}

fn search() -> LiveTool {
    LiveTool::function("search", "Searches", async |_: Query, _| Ok(json!({"hits": 0})))
}

async fn setup_on(platform: Platform, describe: impl FnOnce(LiveBuilder) -> LiveBuilder) -> Value {
    let server = ScriptedServer::start([Script::new()]).await.unwrap();
    let transport = WebSocket::new(platform, server.url());
    let _session = describe(Live::builder()).connect(transport).await.unwrap();
    server.received()[0][0].clone()
}

scenarios! {
    async fn a_setup_contains_only_what_was_configured() {
        let setup = setup_on(Platform::GoogleAi, |live| live.transcription(false, false).session_resumption(false)).await;
        let golden = json!({"setup": {
            "model": "models/gemini-live-2.5-flash-native-audio",
            "generationConfig": {"responseModalities": ["AUDIO"]}
        }});
        assert_eq!(setup, golden);
    }

    async fn a_setup_carries_every_option() {
        let setup = setup_on(Platform::GoogleAi, |live| {
            live.model("m")
                .voice("Kore")
                .instruction("Be kind.")
                .temperature(0.7)
                .top_p(0.9)
                .top_k(40)
                .max_output_tokens(1024)
                .seed(1)
                .thinking(1024)
                .include_thoughts()
                .affective_dialog()
                .proactive_audio()
                .media_resolution(MediaResolution::Low)
                .voice_detection(VoiceDetection {
                    disabled: false,
                    start: Some(Sensitivity::High),
                    end: Some(Sensitivity::Low),
                    prefix_padding: Some(Duration::from_millis(20)),
                    silence: Some(Duration::from_millis(400)),
                })
                .activity_handling(ActivityHandling::Interrupts)
                .turn_coverage(TurnCoverage::OnlyActivity)
                .context_compression(4000, 2000)
                .tool(search().background(Scheduling::WhenIdle))
                .google_search()
                .code_execution()
                .url_context()
        })
        .await;
        let golden = json!({"setup": {
            "model": "models/m",
            "generationConfig": {
                "responseModalities": ["AUDIO"], "temperature": 0.7, "topP": 0.9, "topK": 40, "maxOutputTokens": 1024,
                "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}},
                "thinkingConfig": {"thinkingBudget": 1024, "includeThoughts": true},
                "enableAffectiveDialog": true, "mediaResolution": "MEDIA_RESOLUTION_LOW", "seed": 1
            },
            "systemInstruction": {"parts": [{"text": "Be kind."}]},
            "tools": [
                {"functionDeclarations": [{
                    "name": "search", "description": "Searches", "behavior": "NON_BLOCKING",
                    "parametersJsonSchema": {
                        "title": "Query", "type": "object", "required": ["text"],
                        "properties": {"text": {"type": "string", "description": "What to look for."}}
                    }
                }]},
                {"googleSearch": {}}, {"codeExecution": {}}, {"urlContext": {}}
            ],
            "inputAudioTranscription": {}, "outputAudioTranscription": {},
            "realtimeInputConfig": {
                "automaticActivityDetection": {
                    "disabled": false, "startOfSpeechSensitivity": "START_SENSITIVITY_HIGH",
                    "endOfSpeechSensitivity": "END_SENSITIVITY_LOW", "prefixPaddingMs": 20, "silenceDurationMs": 400
                },
                "activityHandling": "START_OF_ACTIVITY_INTERRUPTS", "turnCoverage": "TURN_INCLUDES_ONLY_ACTIVITY"
            },
            "sessionResumption": {},
            "contextWindowCompression": {"slidingWindow": {"targetTokens": 2000}, "triggerTokens": 4000},
            "proactivity": {"proactiveAudio": true}
        }});
        assert_eq!(setup, golden);
    }

    async fn a_setup_for_vertex_names_the_project_and_leaves_out_what_vertex_does_not_know() {
        let vertex = Platform::Vertex { project: "p".to_owned(), location: "global".to_owned() };
        let setup = setup_on(vertex, |live| {
            live.model("m").text_only().thinking(5).tool(search().background(Scheduling::Silent))
        })
        .await;
        let setup = &setup["setup"];
        assert_eq!(setup["model"], "projects/p/locations/global/publishers/google/models/m");
        assert_eq!(setup["generationConfig"], json!({"responseModalities": ["TEXT"]}));
        assert_eq!(setup["tools"][0]["functionDeclarations"][0].get("behavior"), None);
    }

    async fn what_only_vertex_knows_is_sent_there_and_refused_elsewhere() {
        let vertex = Platform::Vertex { project: "p".to_owned(), location: "global".to_owned() };
        let setup = setup_on(vertex, |live| live.transparent_resumption().explicit_voice_signals()).await;
        assert_eq!(setup["setup"]["sessionResumption"], json!({"transparent": true}));
        assert_eq!(setup["setup"]["explicitVadSignal"], true);
        let google = WebSocket::new(Platform::GoogleAi, "ws://127.0.0.1:9");
        let refused = Live::builder().transparent_resumption().explicit_voice_signals().connect(google).await;
        let Err(LiveError::Invalid { problems }) = refused else { panic!("it was not refused") };
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems.iter().all(|problem| problem.contains("only Vertex AI")), "{problems:?}");
    }

    async fn messages_of_the_client_are_written_as_the_server_reads_them() {
        let session = connect(Script::new(), |live| {
            live.voice_detection(VoiceDetection { disabled: true, ..VoiceDetection::default() })
        })
        .await;
        let handle = &session.handle;
        handle.send_audio([1, 2, 3]).await.unwrap();
        handle.send_video(vec![4, 5].into(), "image/jpeg").await.unwrap();
        handle.activity_start().await.unwrap();
        handle.activity_end().await.unwrap();
        handle.audio_end().await.unwrap();
        handle.send_text("Hello").await.unwrap();
        handle.send_content(&[Content::text("user", "by the way")], false).await.unwrap();
        handle.disconnect().await;
        let golden = [
            json!({"realtimeInput": {"audio": {"mimeType": "audio/pcm;rate=16000", "data": "AQID"}}}),
            json!({"realtimeInput": {"video": {"mimeType": "image/jpeg", "data": "BAU="}}}),
            json!({"realtimeInput": {"activityStart": {}}}),
            json!({"realtimeInput": {"activityEnd": {}}}),
            json!({"realtimeInput": {"audioStreamEnd": true}}),
            json!({"clientContent": {"turns": [{"role": "user", "parts": [{"text": "Hello"}]}], "turnComplete": true}}),
            json!({"clientContent": {"turns": [{"role": "user", "parts": [{"text": "by the way"}]}], "turnComplete": false}}),
        ];
        crate::common::eventually("all arrived", || session.server.received()[0].len() > golden.len()).await;
        assert_eq!(session.server.received()[0][1..], golden);
    }

    async fn a_tool_response_carries_id_name_result_and_scheduling() {
        let script = Script::new().send(call("call-1", "search", json!({"text": "x"})));
        let session = connect(script, |live| live.tool(search().background(Scheduling::WhenIdle))).await;
        let responses = session.server_got(0, "toolResponse", 1).await;
        let golden = json!({"functionResponses": [
            {"id": "call-1", "name": "search", "response": {"hits": 0}, "scheduling": "WHEN_IDLE"}
        ]});
        assert_eq!(responses, [golden]);
    }

    async fn a_new_instruction_is_a_labelled_user_turn_on_google_ai() {
        let session = connect(Script::new(), |live| live.instruction("One.")).await;
        session.handle.update_instruction("Two.");
        let sent = session.server_got(0, "clientContent", 1).await;
        let golden = json!({
            "turns": [{"role": "user", "parts": [{"text": "[New instruction]\nTwo."}]}], "turnComplete": false
        });
        assert_eq!(sent, [golden]);
    }

    async fn messages_of_the_server_become_events_in_the_order_of_the_wire() {
        let samples = BASE64_STANDARD.encode([7, 8, 9]);
        let script = Script::new()
            .send(json!({"voiceActivity": {"voiceActivityType": "ACTIVITY_START"}}))
            .send(json!({"serverContent": {"inputTranscription": {"text": "hi", "finished": true}}}))
            .send(json!({"voiceActivity": {"voiceActivityType": "ACTIVITY_END"}}))
            .send_bytes(&json!({"serverContent": {
                "modelTurn": {"role": "model", "parts": [
                    {"text": "hm", "thought": true},
                    {"text": "Hello"},
                    {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": samples}},
                    {"executableCode": {"language": "PYTHON", "code": "1"}}
                ]},
                "outputTranscription": {"text": "Hello"},
                "groundingMetadata": {}, "urlContextMetadata": {}, "waitingForInput": false,
                "generationComplete": true
            }, "usageMetadata": {"totalTokenCount": 3, "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 1}]}}))
            .send(json!({"sessionResumptionUpdate": {"newHandle": "h", "resumable": true}}))
            .send(json!({"somethingNew": {"of": "tomorrow"}}))
            .send(turn_complete());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = seen.clone();
        let mut session = connect(script, move |live| {
            let on_text = note.clone();
            let on_audio = note.clone();
            live.on_text(move |text| on_text.lock().unwrap().push(format!("text {text}")))
                .on_audio(move |samples| on_audio.lock().unwrap().push(format!("audio {samples:?}")))
                .on_thought(move |text| note.lock().unwrap().push(format!("thought {text}")))
        })
        .await;
        let mut events = Vec::new();
        loop {
            let event = session.events.recv().await.unwrap();
            match &event {
                LiveEvent::WirePhase(_) => {}
                LiveEvent::TurnEnd(_) => break,
                event => events.push(format!("{event:?}")),
            }
        }
        let names: Vec<_> = events.iter().map(|event| event.split([' ', '(', '{']).next().unwrap()).collect();
        let golden = [
            "Connected", "VoiceStart", "InputTranscript", "VoiceEnd", "Thought", "Text", "Audio", "OutputTranscript",
            "Usage", "GenerationComplete", "Resumable", "TextComplete", "TurnComplete",
        ];
        assert_eq!(names, golden);
        assert_eq!(*seen.lock().unwrap(), ["thought hm", "text Hello", "audio b\"\\x07\\x08\\t\""]);
    }

    async fn the_sample_rate_of_the_user_is_sent() {
        let session = connect(Script::new(), |live| live.input_rate(24_000)).await;
        session.handle.send_audio([0]).await.unwrap();
        let sent = session.server_got(0, "realtimeInput", 1).await;
        assert_eq!(sent[0]["audio"]["mimeType"], "audio/pcm;rate=24000");
    }

    async fn signs_of_speech_are_refused_while_the_server_listens_itself() {
        let session = connect(Script::new(), |live| live).await;
        let error = session.handle.activity_start().await.unwrap_err().to_string();
        assert!(error.contains("disable its voice detection"), "{error}");
    }
}
