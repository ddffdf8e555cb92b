/**
 * @module
 * `mcp-resilience check`: whether a configuration of the gateway can be used, what it comes to,
 * and what would break. Nothing is served. Exit codes: 0 nothing would break, 1 something would,
 * 2 the command or the configuration is wrong.
 */
import { type Command, Option } from 'commander';
import type { GatewayConfig } from '../gateway/config.ts';
import type { Visit } from '../gateway/config-connect.ts';
import { given, refuse, say, USAGE_ERROR } from './command-line.ts';

interface Flags {
  readonly config?: string;
  readonly connect?: boolean;
  readonly printConfig?: boolean;
}

const WOULD_BREAK = 1;

const load = async (file: string): Promise<GatewayConfig> => {
  const [{ loadGatewayConfig }, { authenticationOf }] = await Promise.all([
    import('../gateway/config.ts'),
    import('../gateway/config-auth.ts'),
  ]);
  const config = loadGatewayConfig(file, process.env);
  // Whether its variables hold tokens, and its key file keys.
  authenticationOf(config.auth, file, { env: process.env })?.close();
  return config;
};

const counted = (count: number, what: string): string =>
  `${count} ${what}${count === 1 ? '' : 's'}`;

/** Names as clients see them; where one is not the server's own, whose it is. */
const nameLines = (kind: string, entries: Visit['tools']): string[] => {
  if (entries.length === 0) return [];
  const lines = entries.map(({ shown, upstream, name, reason }) =>
    reason === undefined
      ? `  ${shown} (${upstream})`
      : `  ${shown} (${upstream}: ${JSON.stringify(name)})`,
  );
  return [`${counted(entries.length, kind)}, as clients see them:`, ...lines];
};

const describe = async (file: string, config: GatewayConfig): Promise<string[]> => {
  const [{ upstreamLines }, { limitsOf }] = await Promise.all([
    import('../gateway/config-print.ts'),
    import('../gateway/gateway-limits.ts'),
  ]);
  const { upstreams, disabled, variables, notices } = config;
  const uses = new Map(variables.map(({ name, from }) => [name, from]));
  return [
    `${file} can be used: ${counted(upstreams.length, 'server')}`,
    ...disabled.map((name) => `${name} is disabled`),
    ...[...uses].map(([name, from]) =>
      from === 'environment' ? `variable ${name}=***` : `variable ${name} is not set: its default`,
    ),
    ...upstreams.flatMap((upstream) => [...limitsOf(upstream), ...upstreamLines(upstream)]),
    ...notices.map((notice) => `note: ${notice}`),
  ];
};

const write = (lines: readonly string[]): Promise<void> =>
  new Promise((resolve) => {
    process.stdout.write(lines.map((line) => `${line}\n`).join(''), () => resolve());
  });

/** Writes what there is to say, and gives the exit code. */
const report = async (file: string, flags: Flags): Promise<number> => {
  const config = await load(file);
  if (flags.printConfig) {
    const { describeConfig } = await import('../gateway/config-print.ts');
    await write([JSON.stringify(describeConfig(config), undefined, 2)]);
  } else {
    await write(await describe(file, config));
  }
  if (!flags.connect) return 0;
  const { visitUpstreams } = await import('../gateway/config-connect.ts');
  const { tools, prompts, problems } = await visitUpstreams(config, { log: say });
  const found = [...nameLines('tool', tools), ...nameLines('prompt', prompts)];
  // With --print-config stdout holds one JSON document, and nothing else.
  if (!flags.printConfig) await write(found);
  for (const problem of problems) say(`would break: ${problem}`);
  return problems.length > 0 ? WOULD_BREAK : 0;
};

const check = async (flags: Flags): Promise<void> => {
  const file = flags.config ?? refuse('--config FILE is missing: the configuration to check');
  const { ConfigError } = await import('../gateway/config-text.ts');
  try {
    process.exit(await report(file, flags));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    say(`error: ${error.message}`);
    process.exit(USAGE_ERROR);
  }
};

/** Adds the command to the program. */
export const addCheck = (program: Command): void => {
  program
    .command('check')
    .description('say what a configuration of the gateway comes to, and what would break')
    .addOption(
      new Option('--config <file>', 'the mcpServers (or servers) that your client has already')
        .env('MCP_RESILIENCE_CONFIG')
        .argParser(given('the path of a file')),
    )
    .option('--connect', 'connect to every server, and show the names of what they offer')
    .option('--print-config', 'print the configuration that holds as JSON, secrets masked')
    .action(check);
};
