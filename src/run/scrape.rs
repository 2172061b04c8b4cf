//! The HTTP server of `--openmetrics`: a thread of its own, few connections at a time, each bounded in time,
//! so that a scraper that hangs or floods costs the measurement next to nothing.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::stop::within;

const CONNECTIONS: usize = 8;
/// A page costs some 50 µs: at most 400 of them a second.
const PAUSE: Duration = Duration::from_millis(20);
const HEADERS: Duration = Duration::from_secs(5);
const CONNECTION: Duration = Duration::from_mins(5);
const HEADERS_BYTES: usize = 16 << 10;
const OPENMETRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// Makes the page; true for a reader that keeps it.
pub(super) type MakePage = Arc<dyn Fn(bool) -> String + Send + Sync>;

/// Serves until the process ends.
pub(super) fn serve(listener: TcpListener, make_page: &MakePage) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let place = Arc::clone(&places).acquire_owned().await.expect("it is never closed");
            let Ok((stream, _)) = listener.accept().await else {
                // No file is left for it, for now.
                sleep(PAUSE).await;
                continue;
            };
            let make_page = Arc::clone(make_page);
            tokio::task::spawn_local(async move {
                let _place = place;
                let answer = service_fn(|request| answer(Arc::clone(&make_page), request));
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(HEADERS);
                http.max_buf_size(HEADERS_BYTES);
                let serving = http.serve_connection(TokioIo::new(stream), answer);
                // A failure here is the scraper's.
                let _ = within(CONNECTION, serving).await;
                // Whoever opens one after the other waits, too.
                sleep(PAUSE).await;
            });
        }
    });
}

async fn answer(
    make_page: MakePage,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    sleep(PAUSE).await;
    let text = |status: StatusCode, text: &'static str| {
        let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
        *response.status_mut() = status;
        response
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "GET /metrics\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok(response);
    }
    if request.uri().path() != "/metrics" {
        return Ok(text(StatusCode::NOT_FOUND, "loadgen: the metrics are at /metrics\n"));
    }
    let mut response =
        Response::new(Full::new(Bytes::from(make_page(*request.method() == Method::GET))));
    response.headers_mut().insert(CONTENT_TYPE, OPENMETRICS);
    Ok(response)
}
