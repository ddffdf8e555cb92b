import type { Requirement } from '../requirements.ts';

const command = 'issue 2, Command';

/** The command, its configuration and the package. */
export const requirements = {
  'cli.usage-errors': {
    promise: 'whoever calls it wrongly gets exit code 2 and a line that names the flag or variable',
    source: command,
  },
  'cli.cannot-serve': {
    promise: 'an address that cannot be had ends it with code 1 and advice',
    source: command,
  },
  'cli.env-twins': {
    promise: 'each flag has a variable as its twin, and the command line wins',
    source: command,
  },
  'cli.config-refused': {
    promise:
      'a wrong configuration is refused before anything is served, every problem with its path and what is allowed',
    source: command,
  },
  'cli.config-forms': {
    promise: 'comments, trailing commas and a byte order mark are accepted in the configuration',
    source: command,
  },
  'cli.config-presets': {
    promise: 'a preset lies between the defaults of the tool and the settings beside it',
    source: command,
  },
  'cli.http-banner': {
    promise:
      'over HTTP the address, the line to add it to a client and where telemetry goes are on stderr, and nothing on stdout',
    source: command,
  },
  'cli.graceful-end': {
    promise: 'SIGTERM lets the running call be answered and ends with code 0, on both transports',
    source: 'issue 2, mcp/: graceful end',
  },
  'cli.second-signal': {
    promise: 'a second signal ends it at once, with 128 and the number of the signal',
    source: command,
  },
  'cli.stdin-end': {
    promise:
      'when stdin is closed the answer on its way is written and the exit code is 0, whatever the collector does',
    source: 'public case P01: typescript-sdk#2002, PR#1712; design 4: stdio is sacred',
  },
  P11b: {
    promise:
      'in stdio mode every line on stdout is JSON-RPC, at every OTEL_LOG_LEVEL and with console exporters',
    source:
      'public case P11: hurttlocker/o8#1541, hustcc/mcp-mermaid#25, s-stefanov/actual-mcp#161, DollhouseMCP/mcp-server#2261',
  },
  T04: {
    promise: 'a timeout set in the configuration wins over the default, and is said at the start',
    source: 'public case T04: mindstone/Super-MCP#1',
  },
  T05: {
    promise: 'the timeout of one tool is its own: another one, called as slowly, is unaffected',
    source: 'public case T05: IBM/mcp-context-forge#855',
  },
  T08: {
    promise:
      'attempt timeout and deadline are documented, with the defaults of each preset and tool',
    source: 'public case T08: modelcontextprotocol#200',
  },
  'docs.configuration': {
    promise: 'the page on the configuration says of each setting what is allowed and the default',
    source: 'issue 2, Docs',
  },
  'package.installs-and-runs': {
    promise:
      'the packed tarball installs into an empty project; its command, its API and its types work there',
    source: 'public case X03: ooples/token-optimizer-mcp PR#400; issue 2, Repository',
  },
  'package.contents': {
    promise: 'the tarball holds what runs, its types and its papers, and nothing else',
    source: 'issue 2, Repository',
  },
  'e2e.inspector': {
    promise: 'the MCP Inspector lists and calls the tools, over stdio and over HTTP',
    source: 'issue 2, It is done when',
  },
} as const satisfies Record<string, Requirement>;
