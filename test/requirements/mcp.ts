import type { Requirement } from '../requirements.ts';

/** Server, transports, sessions, propagation. */
export const requirements = {
  T01: {
    promise: 'progress renews the attempt time limit, never the deadline: a long tool succeeds',
    source: 'modelcontextprotocol/typescript-sdk#192; design 5',
  },

  'protect.sdk-server': {
    promise:
      "protect() guards a handler of the SDK's own server: marks, failures, cancellation and tool.duration",
    source: 'design 1, the library; design 5',
  },
  'protect.annotations': {
    promise: 'only what the annotations allow is repeated or cached',
    source: 'design 5',
  },

  'server.list': {
    promise:
      'tools/list shows every tool in the order given, with JSON Schema 2020-12, title, annotations and _meta',
    source: '2025-11-25 server/tools; design 5',
  },
  'server.invalid-input': {
    promise:
      'arguments that the schema refuses are answered with a result that names the field and the fix',
    source: 'SEP-1303; design 5',
  },
  'server.passes-through': {
    promise:
      'a result reaches the wire whole: unknown content types, unknown fields, structuredContent and _meta',
    source: 'design 5; reference mcp.md 0.5',
  },
  'server.output-schema': {
    promise:
      'structuredContent that does not match the outputSchema is an internal error and is not sent',
    source: '2025-11-25 server/tools, Output Schema',
  },
  'server.cancel': {
    promise: 'a cancelled call sees its signal abort and is not answered',
    source: '2025-11-25 basic/utilities/cancellation; design 5',
  },
  'stdio.framing': {
    promise: 'any messages, cut into any chunks, are the same messages',
    source: '2025-11-25 basic/transports, stdio',
  },
  'stdio.tolerant': {
    promise:
      'what is no JSON, no message, too long or repeats a running id is answered with an error, and the next line is served',
    source: 'JSON-RPC 2.0 section 5.1; P11',
  },
  'stdio.eof-finishes': {
    promise:
      'when stdin ends, running calls finish, their answers are written, and the session closes at once',
    source: 'P01; design 2',
  },
  'stdio.eof-bounded': {
    promise:
      'when stdin ends, calls that do not finish within 5 s are aborted and the session closes',
    source: 'P01; design 2',
  },
  'stdio.backpressure': {
    promise: 'a client that does not read is not read from, until it does',
    source: 'design 4: stdio is sacred',
  },
  P01: {
    promise:
      'a stdio server with a live port and timer exits 0 when stdin closes, with the in-flight answer written',
    source: 'typescript-sdk#2002, PR#1712',
  },
  'http.sdk-client': {
    promise:
      'the SDK client initializes, lists, calls with progress, listens and ends its session over HTTP',
    source: '2025-11-25 basic/transports, Streamable HTTP',
  },
  'http.json-or-stream': {
    promise:
      'a POST is answered with JSON if the response is all there is to send, and with an event stream otherwise',
    source: '2025-11-25 basic/transports, Streamable HTTP',
  },
  'http.batch': {
    promise: 'batches are served for 2025-03-26 and refused for later versions',
    source: '2025-03-26 basic/transports; 2025-06-18 changelog',
  },
  'http.duplicate-id': {
    promise: 'a request that repeats the id of a running one of its session is refused',
    source: '2025-11-25 basic, Requests',
  },
  'http.get-stream': {
    promise: 'a session has one GET stream, kept alive by comments; without a session GET is 405',
    source: '2025-11-25 basic/transports, Streamable HTTP',
  },
  'http.host': {
    promise: 'only loopback names, the bound host and allowedHosts are answered',
    source: '2025-11-25 basic/transports, Security Warning (DNS rebinding)',
  },
  'http.origin': {
    promise: 'a page of a foreign origin gets 403',
    source: '2025-11-25 basic/transports, Security Warning; reference mcp.md 0.9',
  },
  'http.cors': {
    promise: 'a configured origin gets CORS, preflight included, and no other does',
    source: 'WHATWG Fetch, HTTP-CORS protocol',
  },
  'http.headers': {
    promise: 'media types, protocol version and session id are checked as the specification says',
    source: '2025-11-25 basic/transports, Streamable HTTP',
  },
  'http.malformed': {
    promise: 'whatever is malformed gets a JSON-RPC error in JSON, down to what is not HTTP',
    source: 'JSON-RPC 2.0 section 5.1; reference mcp.md 0.9',
  },
  'http.body-limit': {
    promise: 'a body beyond the limit gets 413 in JSON without being read to its end',
    source: 'reference mcp.md 0.9',
  },
  'http.rate-limit': {
    promise: 'a client address beyond its rate gets 429 with Retry-After, and others do not',
    source: 'design 3, rate limiter',
  },
  'http.connections': {
    promise: 'a connection beyond the maximum is told so with 503',
    source: 'design 1',
  },
  'http.slow-request': {
    promise: 'headers or a body that do not arrive in time get 408',
    source: 'slowloris; design 1',
  },
  'http.health': {
    promise: '/healthz and /readyz answer in JSON, whatever the limits',
    source: 'design 1',
  },
  'http.idle-stream': {
    promise: 'an open GET stream does not keep an idle session for ever',
    source: 'supergateway#141, #160 (P05)',
  },
  'http.no-leaks': {
    promise: 'after 200 clients that came and went no session, stream, request or timer is left',
    source: 'typescript-sdk#611; design 5',
  },
  'http.drain': {
    promise:
      'closing refuses what is new, lets running calls finish for 5 s, aborts the rest and leaves nothing open',
    source: 'design 2',
  },
  'http.server-requests': {
    promise:
      'what the server asks during a call goes to the POST of that call, anything else to the GET stream',
    source: '2025-11-25 basic/transports, Streamable HTTP',
  },
  C01: {
    promise: 'a client that disconnects aborts the handlers of its POST, and of no other',
    source: 'typescript-sdk#611',
  },
  C02: {
    promise: 'without sessions a client that disconnects aborts its handler as well',
    source: 'go-sdk#1093, rust-sdk PR#967',
  },
  C04: {
    promise: 'the POST of a cancelled request ends',
    source: 'probe of SDK 1.32.2 (reference mcp.md 0.7)',
  },
  S05: {
    promise:
      'sessions end after 30 idle minutes, and the longest idle one makes room at the maximum',
    source: 'danny-avila/LibreChat#14248',
  },
  S11: {
    promise: 'without sessions every POST has a server and a transport of its own',
    source: 'typescript-sdk PR#2421',
  },
  'instrument.span': {
    promise:
      'each request has one SERVER span named after method and tool, active in its handler, without arguments or results',
    source: 'semantic-conventions-genai docs/gen-ai/mcp.md; reference otel.md 1.2',
  },
  'instrument.parent': {
    promise:
      'the parent is the context in _meta, with the ambient span linked; a malformed one is ignored',
    source: 'SEP-414; O04',
  },
  'instrument.baggage': {
    promise: 'baggage of the client becomes no attribute, and is not handed on unless asked for',
    source: 'O04; design 4',
  },
  'instrument.bounded-names': {
    promise: 'unknown tools, prompts and methods are recorded as _other',
    source: 'design 4',
  },
  'instrument.errors': {
    promise:
      'a span is an error if the tool or the server failed, and not if the caller was wrong or the answer is degraded',
    source: 'semantic-conventions-genai docs/gen-ai/mcp.md; reference otel.md 1.2',
  },
  'question.span': {
    promise:
      'what a server asks its client is a CLIENT span and a duration in the trace of the call, and its context goes to the client in place of any other',
    source: 'semantic-conventions-genai docs/gen-ai/mcp.md; reference otel.md 1.2, 1.4',
  },
  'question.ends': {
    promise:
      'it ends once, by its answer, its cancellation, or the client that cannot be reached or has gone, and only a refusal or a failure is an error',
    source: 'reference otel.md 1.2',
  },
  'question.tools': {
    promise: 'a tool that asks the client does so within the trace of its call',
    source: 'reference otel.md 1.2',
  },
  'notice.span': {
    promise:
      'a notification that tells of a turn of events is a span, sent or received, with its context in _meta',
    source: 'reference otel.md 1.2, 1.4',
  },
  'notice.few': {
    promise:
      'notifications that come by the thousand have no span, and none has a duration among those of requests',
    source: 'design 4; reference otel.md 1.2',
  },
  'instrument.metrics': {
    promise:
      'tool.duration and the operation and session durations carry the attributes of the contract',
    source: 'design 4; reference otel.md 1.3',
  },
  'instrument.always-ends': {
    promise: 'a call that is cancelled, or whose session or door ends, ends its span as cancelled',
    source: 'design 4',
  },
  O09: {
    promise: 'a client that disconnects is an outcome of its own, not an error',
    source: 'archestra-ai/archestra PR#5681',
  },
} as const satisfies Record<string, Requirement>;
