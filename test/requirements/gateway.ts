import type { Requirement } from '../requirements.ts';

/** The gateway: links, upstreams, catalogue, relay and its commands. */
export const requirements = {
  // Names and configuration.
  'naming.injective': {
    promise:
      'no two names that clients see are the same, each has at most 64 characters of A-Z a-z 0-9 _ . - and leads back to where it came from',
    source: 'design 6; issue 6, It is done when',
  },
  'naming.stable': {
    promise:
      'a name depends neither on the order of upstreams nor on one with which nothing collides',
    source: 'design 6; case A10',
  },
  'naming.collision': {
    promise:
      'a name that several upstreams have gets the prefix in all of them, never in the last one alone',
    source: 'docker/mcp-gateway#11; langchain-mcp-adapters#605 (case A10)',
  },
  A12: {
    promise:
      'a server name that could not stand in front of a tool is refused by the configuration',
    source: 'obot-platform/obot#6429',
  },
  'config.formats': {
    promise:
      'the files of Claude, Cursor, VS Code and Gemini are read as they are: comments, trailing commas, foreign keys and disabled servers included',
    source: 'design 6; reference mcp.md 5',
  },
  'config.variables': {
    promise:
      'variables are filled in wherever a text is read, and one that is not set is an error that names the key and the variable',
    source: 'design 6; anthropics/claude-code#6204, #51581',
  },
  'config.refused': {
    promise:
      'everything that is wrong is told at once, each with its path and what is allowed or meant',
    source: 'design 6',
  },
  'config.defaults': {
    promise:
      'an upstream without a resilience block gets no cache, no rate limit and no repeat of a call that its tool does not allow',
    source: 'design 6',
  },
  'config.timeout-wins': {
    promise: 'the timeout that an entry has already holds, and is shown',
    source: 'case T04: mindstone/Super-MCP#1',
  },
  'config.timeout-shown': {
    promise: 'the limits that hold are shown by check, in words and as JSON',
    source: 'case T04: mindstone/Super-MCP#1',
  },
  'config.secrets': {
    promise:
      'what is printed of a configuration holds no value of a header or env, and none of a variable that is long enough for a secret',
    source: 'issue 6, Security',
  },
  'check.verdict': {
    promise:
      'check says what holds for each upstream and what would break, and its exit code says whether anything would',
    source: 'issue 6, 2',
  },

  // Links.
  'link.stdio.environment': {
    promise:
      'a child gets the few variables that programs need and those configured for it, and none of ours beside them',
    source: 'design 6; issue 6, Security',
  },
  'link.stdio.start-fails': {
    promise:
      'a command that cannot be started is told by its name and what to mend, and nothing was sent',
    source: 'issue 6, 3',
  },
  'link.stdio.banners': {
    promise: 'lines on stdout that are no JSON-RPC message are left out, said once and counted',
    source: 'case P11 (a): hurttlocker/o8#1541',
  },
  'link.stdio.too-long': {
    promise:
      'a message beyond maxMessageBytes fails the request that it answers, at once, and nothing else',
    source: 'issue 6, It is done when; reference mcp.md 1.4',
  },
  'link.stdio.large': {
    promise: 'messages of 20 MiB pass whole in both directions',
    source: 'issue 6, 4',
  },
  'link.stdio.death': {
    promise:
      'a child that dies ends its link with the code or signal, and with its last words, secrets masked',
    source: 'case P08: MoonshotAI/kimi-code#2109',
  },
  'link.stdio.delivery': {
    promise: 'a message that the child could not have read whole was not sent',
    source: 'design 5',
  },
  'link.stdio.written': {
    promise:
      'of several messages in a write that failed, those that the child may have read count as sent',
    source: 'design 5; case R02',
  },
  'link.stdio.close': {
    promise:
      'a child is asked to end by the end of its stdin, by SIGTERM after 2 s and by SIGKILL after 2 s more',
    source: 'issue 6, 3',
  },
  'link.stdio.grandchild': {
    promise: 'what a child has started ends with it, however it ends',
    source: 'reference mcp.md 1.4: npx and its server',
  },
  'link.stdio.gateway-exit': {
    promise:
      'children end with the process that started them, by exit, by an uncaught error and when it is killed',
    source: 'issue 6, 3; typescript-sdk#2002',
  },
  'link.stdio.stderr': {
    promise: '100 000 lines on stderr become 100 and a count',
    source: 'issue 6, It is done when',
  },
  'link.rounds': {
    promise: '50 links opened and closed leave no process, socket, listener or timer behind',
    source: 'issue 6, It is done when',
  },
  'link.http.answers': {
    promise:
      'answers come as JSON or as an event stream, with the session and the version named from initialize on',
    source: '2025-11-25 basic/transports, Streamable HTTP',
  },
  'link.http.parse': {
    promise:
      'a response of HTTP/1.1 is read as it was meant, in whatever pieces it comes: with a length, in chunks with extensions and trailers, empty, after interim ones',
    source: 'RFC 9112 6, 7',
  },
  'link.http.strict': {
    promise: 'of damaged responses none is taken that llhttp refuses or reads in another way',
    source: 'RFC 9112 6.3, 11.1; issue 6 (Security)',
  },
  'link.http.reuse': {
    promise:
      'a connection is used again after a whole answer alone, one at a time, and what nobody asked for is never taken for an answer',
    source: 'RFC 9112 9.3, 11.2; issue 6 (several clients without mixing)',
  },
  'link.http.telemetry': {
    promise:
      'each HTTP request of a call has a CLIENT span whose context it carries, and is counted by status or error, without secrets of its URL',
    source: 'OpenTelemetry semantic conventions, HTTP client span and metrics; design 4',
  },
  'link.http.order': {
    promise: 'nothing overtakes notifications/initialized, though each message has its own POST',
    source: '2025-11-25 basic/lifecycle',
  },
  'link.http.lost': {
    promise: 'a stream that ends without its answer loses the one request, and the link lives on',
    source: '2025-11-25 basic/transports; case R02',
  },
  'link.http.resume': {
    promise: 'a stream that ends early goes on after its last event id, as soon as the server asks',
    source: '2025-11-25 basic/transports, Resumability and Redelivery',
  },
  'link.http.server-stream': {
    promise:
      'the GET stream is asked for once where there is none, and with a growing backoff where it ends at once',
    source: 'cases R05, L31: open-webui#27795; python-sdk#2393',
  },
  'link.http.session-lost': {
    promise:
      'a session that is gone ends the link: what met it was not sent, and what runs may still be answered',
    source: 'case S01: typescript-sdk#1708',
  },
  'link.http.statuses': {
    promise:
      'of every HTTP status it is known whether the request may have been executed, and Retry-After is kept',
    source: 'design 5; case B10',
  },
  'link.http.redirect': {
    promise:
      'a redirect is followed within its origin with method and body kept, and refused beyond it',
    source: 'issue 6, Security',
  },
  'link.http.limits': {
    promise:
      'an answer beyond maxMessageBytes, of another type or not JSON-RPC is a failure that says so',
    source: 'design 5',
  },
  'link.http.close': {
    promise: 'closing deletes the session, ends every stream and leaves no connection',
    source: 'case S05: danny-avila/LibreChat#14248',
  },
  'link.http.abort': {
    promise: 'an aborted request ends its stream and its connection, and nothing else',
    source: 'design 5',
  },
  'link.http.network': {
    promise:
      'refused, unresolved and broken connections are told apart by whether anything was sent',
    source: 'design 5',
  },
  'link.sse.answers': {
    promise:
      'HTTP+SSE of 2024-11-05: posts to the address that the stream names, answers come on it',
    source: '2024-11-05 basic/transports',
  },
  'link.sse.origin': {
    promise: 'an address to post to that is of another origin is refused',
    source: 'issue 6, Security',
  },
  'link.sse.lost': {
    promise: 'the end of the stream is the end of the link; a session that is gone was not sent to',
    source: '2024-11-05 basic/transports',
  },
  // Catalogue, relay and commands.
  'catalog.kept': {
    promise:
      'a list is asked for once for all who want it, and kept until its server says that it has changed',
    source: 'design 6; issue 6, 4',
  },
  'catalog.overdue': {
    promise:
      'a list that takes too long is not waited for, is shown once it comes, and an old one is shown meanwhile',
    source: 'issue 6, 4; T07',
  },
  'catalog.uris': {
    promise:
      'a URI leads to the first upstream that lists it, else to the one whose template fits it best',
    source: 'issue 6, 4',
  },
  'catalog.names-stay': {
    promise: 'an upstream that goes away takes its own entries along and changes no other name',
    source: 'design 6',
  },
  A01: {
    promise: 'an upstream that is down hides its own tools alone, and health_check tells of it',
    source: 'cases.md: agentgateway#962',
  },
  A03: {
    promise:
      'lists are followed to their last page, and a cursor that leads in a circle is survived',
    source: 'cases.md: agentgateway#3476; vercel/ai#19240; github/copilot-cli#4006',
  },
  A05: {
    promise:
      'structuredContent, _meta and fields that nobody knew reach the other side as they are',
    source: 'cases.md: gridctl/gridctl#848, mcpmux/mcp-mux PR#206',
  },
  A06: {
    promise: 'an entry of tools/list keeps every field but its name',
    source: 'cases.md: wso2/carbon-apimgt PR#13901',
  },
  A08: {
    promise: 'list_changed is relayed to those who were promised it',
    source: 'cases.md: apify/apify-mcp-server#1233',
  },
  A10: {
    promise: 'tools of the same name get a prefix, both of them, a person is told, and both work',
    source: 'cases.md: docker/mcp-gateway#11; langchain-ai/langchain-mcp-adapters#605',
  },
  T07: {
    promise:
      'an upstream that does not answer tools/list costs its time limit and its own tools, and is named',
    source: 'cases.md: BerriAI/litellm PR#36675',
  },
  'catalog.odd-names': {
    promise:
      '5 000 tools and names with spaces, unicode or __proto__ are listed under names that clients take, and work',
    source: 'issue 6, It is done when',
  },
  'relay.changes': {
    promise: 'a change of a list is told once, and the list is read again when it is asked for',
    source: 'issue 6, 4',
  },

  // Peer, upstream sessions and their manager.
  'peer.ids': {
    promise:
      'requests get ids and progress tokens of our own, so that the same ones of several clients never meet',
    source: 'design 5; issue 6, 4',
  },
  'peer.cancel': {
    promise:
      'an abort is told to the upstream with its reason, once, never for initialize and never after the answer',
    source: '2025-11-25 basic/utilities/cancellation; design 5',
  },
  'peer.late': {
    promise: 'answers, progress and questions that nobody waits for are ignored and counted',
    source: 'design 5',
  },
  'peer.questions': {
    promise:
      'what an upstream asks goes to whom its running request belongs, ping is answered here, and nobody is left waiting',
    source: 'design 5; issue 6, 4',
  },
  'peer.meta': {
    promise:
      '_meta keeps everything that the client put into it, gets our trace context and token, and loses the baggage of others',
    source: 'SEP-414; case O04',
  },
  'upstream.initialize': {
    promise:
      'an upstream is told the version, capabilities and name of the client as they are, and its answer is handed on whole',
    source: 'issue 6, 4',
  },
  'upstream.connect-timeout': {
    promise:
      'a connection that is not initialised within the connect timeout fails, leaves nothing behind, and is tried again by itself',
    source: 'issue 6, 3',
  },
  'upstream.fails-fast': {
    promise:
      'a call of an upstream that is down fails at once, with the reason and when the next try is due',
    source: 'issue 6, 3; case B09',
  },
  'upstream.closed': {
    promise:
      'a session that is closed, in whatever state it is, leaves no connection, timer or waiting call behind',
    source: 'issue 6, 3',
  },
  'upstream.idle-timeout': {
    promise:
      'the time limit of an attempt is one of silence, renewed by progress; the deadline is not',
    source: 'design 5; case T01',
  },
  'upstream.tool-policy': {
    promise:
      'a tool may have other time limits than its upstream, longer ones too, and shares its breaker',
    source: 'IBM/mcp-context-forge#855 (case T05)',
  },
  'upstream.states': {
    promise:
      'connecting, ready, degraded and down say how an upstream is, with the reason, without any traffic',
    source: 'design 6; issue 6, 3',
  },
  'upstream.shared': {
    promise:
      'a shared upstream is initialised once for all clients, and what it says and asks goes to the right one',
    source: 'issue 6, 4',
  },
  B01: {
    promise:
      'isError results pause at most their own tool, and the text says that it is the tool and not the server',
    source: 'cases.md',
  },
  B02: {
    promise:
      'a call that has failed alike N times in a row is answered without being made again, with the advice to stop',
    source: 'cases.md',
  },
  K02: {
    promise: 'kept answers never cross from one upstream, principal or argument to another',
    source: 'cases.md',
  },
  R01: {
    promise:
      'error responses pass unchanged: they are not retried, open nothing and end no connection',
    source: 'cases.md',
  },
  'upstream.single-flight': {
    promise:
      'the clients of a flapping upstream try together instead of each by itself, and the log stays readable',
    source: 'cases.md, R06: LibreChat PR#12162',
  },
  'upstream.dead-pipe': {
    promise:
      'a call that meets a child which has just died goes to the next one, or is told as lost',
    source: 'NousResearch/hermes-agent#16788 (case L27)',
  },
  'upstream.rounds': {
    promise: '50 sessions opened and closed leave no child behind',
    source: 'issue 6, It is done when; case P02',
  },
  'upstream.unreachable': {
    promise:
      'a server that cannot be reached is told as such, tried again by itself, and keeps its session if it remembers it',
    source: 'design 6',
  },
  'upstream.deletes-sessions': {
    promise: 'the session with a server over HTTP is deleted with the session of its client',
    source: 'danny-avila/LibreChat#14248 (case S05)',
  },
  T02: {
    promise: 'upstreams are always asked for progress, whether or not the client wants it',
    source: 'cases.md',
  },
  P08: {
    promise:
      'the death of a child fails what it was asked at once, with how it ended, and the next call is answered by a new one',
    source: 'cases.md',
  },
  S01: {
    promise:
      'a session that the server has forgotten is initialised anew, once, and what was refused is executed once in the new one',
    source: 'cases.md',
  },
  S03: {
    promise: 'an error that says that the session is over evicts it, and another one is built',
    source: 'cases.md',
  },
  S06: {
    promise: 'each client has one session with the upstream, for all its calls',
    source: 'cases.md',
  },
  S08: {
    promise: 'sessions of two clients with two upstreams never mix, with equal ids and tokens',
    source: 'cases.md',
  },
  B09: {
    promise:
      'after so many failures the next call is refused at once, unsent, with when to come back',
    source: 'cases.md',
  },
  B10: {
    promise: 'no HTTP status but that of a lost session ends a connection, and Retry-After is kept',
    source: 'cases.md',
  },
  R02: {
    promise:
      'a write whose answer was lost is not repeated, and is told as one that may have been executed',
    source: 'cases.md',
  },
  R05: {
    promise:
      'a server without a stream for its own messages is asked for it once, one that ends it less and less often',
    source: 'cases.md',
  },
  'upstream.at-most-once': {
    promise:
      'whatever is killed or lost when, a call that must not be repeated is executed at most once, and what its caller is told is true',
    source: 'issue 6, It is done when',
  },
  'upstream.at-most-once.processes': {
    promise: 'the same with real children that are killed, counted by the children',
    source: 'issue 6, It is done when',
  },
  P10: {
    promise: 'an edited upstream has ended, its child included, before the new one serves',
    source: 'cases.md',
  },
  'manager.apply': {
    promise:
      'an edited configuration changes what was edited alone: everything else keeps its sessions and children',
    source: 'issue 6, 2',
  },
  'manager.faults': {
    promise: 'an injected exit or loss of session is the real thing, and is recovered from like it',
    source: 'design 7',
  },
  'client-operation.conventions': {
    promise:
      'each request is a CLIENT span and a duration after the MCP conventions, parent of the spans of the upstream, without arguments',
    source: 'reference otel.md 1.2, 1.3; issue 6, 6',
  },
  'client-operation.bounded': {
    promise:
      'only names that the upstream has listed, or answered to before anybody asked for a list, become names of spans and series',
    source: 'design 4',
  },
  'client-operation.outcomes': {
    promise: 'the span says who answered: the upstream or which policy, and what was wrong',
    source: 'issue 6, 6',
  },
  'client-operation.attempts': {
    promise:
      'a call that was repeated is one span with a child for each further attempt, and no error if it was mended',
    source: 'design 4',
  },
  'upstream.telemetry': {
    promise: 'state, restarts and length of sessions are metrics and events of each upstream',
    source: 'design 4; issue 6, 3',
  },
  'upstream.watched': {
    promise:
      'an upstream that is down is tried again though no client is left, and said to be back',
    source: 'issue 6, 3: never for good',
  },
  'upstream.waits-for-people': {
    promise:
      'a call whose upstream waits for an answer of the client is not taken for a silent one, and still has its deadline',
    source: 'design 6: defaults never break a server that works today',
  },
  'gate.backoff': {
    promise: 'the waits between tries to connect grow up to their cap, and never end for good',
    source: 'issue 6, 3',
  },
  'gate.useful': {
    promise: 'only a connection that was good for something, or has lasted, begins the waits anew',
    source: 'modelcontextprotocol/python-sdk#3356; case L31',
  },
  'relay.transparent': {
    promise:
      'a single server behind wrap answers as it does without it, initialize, unknown methods and errors included',
    source: 'issue 6, 1',
  },
  A02: {
    promise:
      'initialize fails while the only server cannot be reached; of several it is said who is not there',
    source: 'cases.md: PrefectHQ/fastmcp PR#4228',
  },
  A09: {
    promise:
      'elicitation and sampling reach the client that called, and one that cannot is not waited for',
    source: 'cases.md: PrefectHQ/fastmcp#3169',
  },
  'relay.together': {
    promise: 'several servers are introduced as one, with what all of them can do and say',
    source: 'issue 6, 4',
  },
  'relay.no-mix': {
    promise:
      'clients with the same ids and progress tokens, at the same tools at the same time, get what is theirs',
    source: 'issue 6, 4; cases.md: S08',
  },
  'relay.progress': {
    promise: 'progress reaches the client that asked for it, under its own token, and no other',
    source: '2025-11-25 basic/utilities/progress; T02',
  },
  'relay.cancel': {
    promise: 'a client that cancels or leaves cancels the work upstream',
    source: 'design 5',
  },
  'relay.failures': {
    promise:
      'failed tools are results with a structured failure, other failures errors with the same in their data, and errors of the upstream stay its own',
    source: 'design 5',
  },
  'relay.asks': {
    promise:
      'what upstreams ask reaches the client in whose call they ask it, and its answer, good or bad, the one that asked',
    source: 'issue 6, 4',
  },
  'relay.resources': {
    promise: 'resources are read, subscribed to and left at the server that has them',
    source: 'issue 6, 4',
  },
  'relay.prompts': {
    promise: 'prompts and completions go to their server under its own names',
    source: 'issue 6, 4',
  },
  'relay.notifications': {
    promise: 'notifications pass in both directions, known or not',
    source: 'issue 6, 4',
  },
  'relay.asks-traced': {
    promise:
      'a question of a server is a SERVER span in the trace of the call it belongs to, the one to the client a CLIENT span below it, whose context the client gets',
    source: 'reference otel.md 1.2, 1.3, 1.4',
  },
  'real.asks-traced': {
    promise:
      'sampling and elicitation of server-everything behind wrap are one trace with its calls',
    source: 'reference otel.md 1.2',
  },
  'relay.notices-traced': {
    promise:
      'changes of lists and cancellations are spans on both sides of the gateway, progress and log messages are none',
    source: 'reference otel.md 1.2, 1.4',
  },
  'relay.renewed': {
    promise:
      'a server that was started again is told the log level and the subscriptions, and its client that lists may have changed',
    source: 'design 6',
  },
  'wrap.stdio': {
    promise:
      'wrap shows one server as it is, over stdio, and takes its child along when the client goes',
    source: 'issue 6, 1',
  },
  'wrap.first-call': {
    promise:
      'the first call of a client that asked for no list is recorded under its name once it is answered, and a made-up one is not',
    source: 'design 4',
  },
  'wrap.environment': {
    promise: 'the wrapped server has the environment that it had without us, and what --env adds',
    source: 'issue 6, 1',
  },
  'wrap.url': {
    promise: 'wrap stands in front of a server at a URL, with headers that nobody gets to see',
    source: 'issue 6, 1 and 5',
  },
  'wrap.http': {
    promise: 'wrap --http serves many clients, by one session with the server if asked',
    source: 'issue 6, 1',
  },
  'wrap.usage': {
    promise: 'what the command line gets wrong is told with what is meant, and exit code 2',
    source: 'issue 6, 1',
  },
  P11: {
    promise:
      'banners and noise of a server reach no client: every line on stdout is JSON-RPC, whatever the log level and exporter',
    source: 'cases.md: hurttlocker/o8#1541, hustcc/mcp-mermaid#25, DollhouseMCP/mcp-server#2261',
  },
  'gateway.limits': {
    promise: 'a time limit that was set holds, and is said at the start',
    source: 'cases.md T04: mindstone/Super-MCP#1',
  },
  'gateway.command': {
    promise:
      'gateway --config serves all servers of a file, with health_check, and says what holds for each',
    source: 'issue 6, 2',
  },
  'gateway.first-call': {
    promise:
      'through the gateway the first call of a client that asked for no list is recorded under its name',
    source: 'design 4',
  },
  'gateway.proxy': {
    promise:
      'servers over HTTP are called through HTTPS_PROXY and HTTP_PROXY, except this machine and what NO_PROXY names, and only the proxy sees its password',
    source:
      'conventions of curl, wget, Go and Python; RFC 9110, section 9.3.6; RFC 9112, section 3.2.2',
  },
  'gateway.ready': {
    promise: '/readyz is 200 once a server behind it can be used, whether or not somebody calls',
    source: 'issue 6, 2',
  },
  'gateway.strict': {
    promise:
      'with --strict a server that is not there ends the start, with exit code 1 and its name',
    source: 'design 6; cases.md: A01, A02',
  },
  'gateway.usage': {
    promise:
      'a wrong command line or configuration is told with exit code 2 before anything starts',
    source: 'issue 6, 2',
  },
  'gateway.ends': {
    promise: 'SIGTERM lets running calls finish, reaps every child and exits 0',
    source: 'issue 6, 3',
  },
  'gateway.shared': {
    promise:
      'clients of a shared server use one session, which lists once for all, and each gets what is its own',
    source: 'issue 6, 4; cases.md: S06',
  },
  'gateway.watch': {
    promise:
      'an edited file is applied: what stayed the same runs on, what changed is replaced, clients are told, and a wrong file changes nothing',
    source: 'issue 6, 2; cases.md: P10',
  },
  P02: {
    promise: 'after 50 clients that came and went there are as many children and sockets as before',
    source: 'cases.md: metatool-ai/metamcp#162, #128',
  },
  P04: {
    promise: '100 POSTs without a session start no further child',
    source: 'cases.md: supercorp-ai/supergateway#108',
  },
  P05: {
    promise:
      'a client that is lost with an open stream costs its session no longer than the idle limit',
    source: 'cases.md: supergateway#141, #160',
  },
  P07: {
    promise: 'a client that ends its session leaves the calls of others alone',
    source: 'cases.md: supergateway#116',
  },
  O04: {
    promise:
      'client, gateway and server are one trace, over stdio and HTTP, and baggage goes no further',
    source: 'cases.md: anthropics/claude-code#61517; lastmile-ai/mcp-agent#239',
  },
  'gateway.isolation': {
    promise:
      'a server that is killed, hangs, floods, babbles, forgets or answers too much costs its own calls a structured failure, and nobody else anything',
    source: 'issue 6, It is done when',
  },
  'real.everything': {
    promise:
      'server-everything behind wrap answers byte for byte as without it, calls, prompts, resources, questions and progress included',
    source: 'issue 6, It is done when',
  },
  'real.filesystem': {
    promise: 'server-filesystem behind wrap answers byte for byte as without it',
    source: 'issue 6, It is done when',
  },
  'real.memory': {
    promise: 'server-memory behind wrap answers byte for byte as without it',
    source: 'issue 6, It is done when',
  },
  'real.sequential-thinking': {
    promise: 'server-sequential-thinking behind wrap answers byte for byte as without it',
    source: 'issue 6, It is done when',
  },
  'real.http': {
    promise: 'server-everything over Streamable HTTP answers through the gateway as without it',
    source: 'issue 6, It is done when',
  },
  'real.together': {
    promise: 'four real servers work behind one gateway, under their own names',
    source: 'issue 6, It is done when',
  },
  X03: {
    promise: 'the packed package installs, and its command wraps a server over stdio',
    source: 'cases.md: ooples/token-optimizer-mcp PR#400',
  },
  'relay.changes-once': {
    promise: 'many changes of a list at once are one notification',
    source: 'issue 6, 4: list_changed relayed once',
  },
  'gateway.health': {
    promise:
      'health_check is ok, degraded or down after the servers that can be used, and says why and until when',
    source: 'issue 6, 3',
  },
} as const satisfies Record<string, Requirement>;
