/**
 * @module
 * `mcp-resilience wrap`: in front of one server, which is shown as it is.
 */
import { basename } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { GatewayConfig } from '../gateway/config.ts';
import { given, refuse } from './command-line.ts';
import { addDoorFlags, type DoorFlags, servesHttp } from './door-flags.ts';
import { startGateway } from './gateway-door.ts';

interface Flags extends DoorFlags {
  readonly name?: string;
  readonly preset?: string;
  readonly timeout?: number;
  readonly deadline?: number;
  readonly env: Readonly<Record<string, string>>;
  readonly url?: string;
  readonly header: Readonly<Record<string, string>>;
  readonly sse?: boolean;
  readonly cwd?: string;
  readonly shared?: boolean;
  readonly config?: string;
}

const milliseconds = (text: string): number => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1) {
    throw new InvalidArgumentError('It must be a whole number of milliseconds, at least 1.');
  }
  return value;
};

/** Reads `K=V` or `K: V`, given as often as there are. */
const pair =
  (separator: string, form: string) =>
  (text: string, before: Readonly<Record<string, string>>): Record<string, string> => {
    const at = text.indexOf(separator);
    // Without the text: it may be a secret.
    if (at < 1) throw new InvalidArgumentError(`It must have the form ${form}.`);
    const entries = [
      ...Object.entries(before),
      [text.slice(0, at).trim(), text.slice(at + 1).trim()],
    ];
    return Object.fromEntries(entries);
  };

/** Programs that start others: theirs is not the name of the server. */
const STARTERS = new Set(
  'npx npm pnpm pnpx yarn bunx bun uvx uv pipx node deno python python3 docker podman cmd sh'.split(
    ' ',
  ),
);
const VERBS = new Set(['run', 'exec', 'dlx', 'x', '-m', 'tool', '/c']);

/** What a server is called that nobody gave a name: its program, package or host. */
export const nameOf = (words: readonly string[], url: string | undefined): string => {
  const host = url !== undefined && URL.canParse(url) ? new URL(url).hostname : '';
  const program = words.find((word, index) => {
    if (word.startsWith('-') || VERBS.has(word)) return false;
    return index > 0 || !STARTERS.has(basename(word).replace(/\.(?:exe|cmd)$/i, ''));
  });
  const last = (program ?? words[0] ?? host)
    .replace(/^(.+)[@:][^/\\@:]*$/, '$1')
    .split(/[/\\]/)
    .findLast((part) => part !== '');
  const name = (host || (last ?? '')).replace(/\.(?:[cm]?[jt]s|py|exe)$/i, '');
  return name.replace(/[^A-Za-z0-9_.-]+/g, '-').slice(0, 64) || 'server';
};

/**
 * The configuration that the command line says. What it names is taken as it stands: the shell
 * or the client has put in the variables. In a file, variables hold as they do for `gateway`.
 */
const configOf = async (flags: Flags, words: readonly string[]): Promise<GatewayConfig> => {
  const [{ readGatewayConfig }, { parseObject, readText }] = await Promise.all([
    import('../gateway/config.ts'),
    import('../gateway/config-text.ts'),
  ]);
  const { url, preset, timeout, deadline, shared } = flags;
  const name = flags.name ?? nameOf(words, url);
  const [command = '', ...args] = words;
  const entry =
    url === undefined
      ? // The server gets the whole environment, as it would without us.
        { command, args, env: { ...process.env, ...flags.env }, cwd: flags.cwd }
      : { url, headers: flags.header, ...(flags.sse && { type: 'sse' }) };
  const said = readGatewayConfig({ mcpServers: { [name]: entry } }, { name: 'the command line' });
  const file = flags.config === undefined ? {} : parseObject(readText(flags.config), flags.config);
  const servers = Object(file.mcpServers ?? file.servers);
  const own = Object.hasOwn(servers, name) ? Object(servers[name]) : {};
  const resilience = {
    ...Object(own.resilience),
    ...(preset !== undefined && { preset }),
    ...(deadline !== undefined && { deadline }),
    ...(shared !== undefined && { shared }),
    ...(timeout !== undefined && { timeout }),
  };
  const limits = readGatewayConfig(
    {
      gateway: file.gateway,
      // Only for its limits: how it is reached stands on the command line.
      mcpServers: { [name]: { command: 'server', timeout: own.timeout, resilience } },
    },
    { name: flags.config ?? 'the command line', env: process.env },
  );
  const [addressed] = said.upstreams;
  const [limited] = limits.upstreams;
  if (!addressed || !limited) throw new TypeError('one server makes one upstream');
  const secrets = [...new Set([...addressed.secrets, ...limited.secrets])];
  return {
    ...limits,
    upstreams: [{ ...limited, address: addressed.address, secrets }],
    notices: [...said.notices, ...limits.notices],
  };
};

const wrap = async (words: readonly string[], flags: Flags, command: Command): Promise<void> => {
  if (flags.url === undefined && words.length === 0) {
    refuse('what is to be wrapped? Give -- and the command of a server, or --url');
  }
  if (flags.url !== undefined && words.length > 0) {
    refuse('--url and a command exclude each other; give one of them');
  }
  const only = flags.url === undefined ? ['header', 'sse'] : ['env', 'cwd'];
  for (const name of only) {
    if (command.getOptionValueSource(name) === 'cli') {
      refuse(`--${name} has no meaning for ${flags.url === undefined ? 'a command' : 'a URL'}`);
    }
  }
  await startGateway({
    http: servesHttp(flags, command),
    flags,
    config: () => configOf(flags, words),
    transparent: true,
  });
};

const EXAMPLES = `
Examples:
  mcp-resilience wrap -- npx -y @modelcontextprotocol/server-filesystem /data
  mcp-resilience wrap --preset internal --http --port 8080 -- node server.js
  mcp-resilience wrap --url https://mcp.example/mcp --header "Authorization: Bearer $TOKEN"`;

/** Adds the command to the program. */
export const addWrap = (program: Command): void => {
  const command = program
    .command('wrap')
    .description('stand in front of one MCP server, which is shown as it is')
    .argument('[command...]', 'after --: the command that starts the server, and its arguments')
    .addOption(
      new Option('--name <name>', 'what it is called in telemetry').argParser(given('a name')),
    )
    .addOption(
      new Option('--preset <preset>', 'kind of dependency').choices([
        'public-api',
        'paid-api',
        'internal',
        'database',
        'filesystem',
      ]),
    )
    .addOption(
      new Option(
        '--timeout <ms>',
        'longest silence of a call; progress renews it (60000)',
      ).argParser(milliseconds),
    )
    .addOption(
      new Option('--deadline <ms>', 'longest time of a call, whatever happens (300000)').argParser(
        milliseconds,
      ),
    )
    .addOption(
      new Option('--env <name=value>', 'a variable for the server; repeatable')
        .default({}, 'none')
        .argParser(pair('=', 'NAME=VALUE')),
    )
    .option('--cwd <folder>', 'where the server is started')
    .option('--url <url>', 'of a server that runs, over Streamable HTTP')
    .addOption(
      new Option('--header <name: value>', 'a header for that server; repeatable')
        .default({}, 'none')
        .argParser(pair(':', 'NAME: VALUE')),
    )
    .option('--sse', 'the server at the URL speaks HTTP+SSE (2024-11-05)')
    .option('--shared', 'one session with the server for all clients, with --http')
    .addOption(
      new Option(
        '--config <file>',
        'resilience block of the server, and gateway settings',
      ).argParser(given('the path of a file')),
    )
    .showHelpAfterError(
      '(the command of the server stands behind --, see mcp-resilience wrap --help)',
    )
    .addHelpText('after', EXAMPLES)
    .action(wrap);
  addDoorFlags(command);
};
