/**
 * @module
 * `mcp-resilience gateway`: in front of all servers of a configuration file.
 */
import { type Command, Option } from 'commander';
import type { ServedGateway } from '../gateway/gateway.ts';
import type { PrefixMode } from '../gateway/naming.ts';
import { given, refuse, say } from './command-line.ts';
import { addDoorFlags, type DoorFlags, servesHttp } from './door-flags.ts';
import { startGateway } from './gateway-door.ts';

interface Flags extends DoorFlags {
  readonly config?: string;
  readonly watch?: boolean;
  readonly strict?: boolean;
  readonly prefix?: PrefixMode;
  readonly healthTool: boolean;
}

const gateway = async (flags: Flags, command: Command): Promise<void> => {
  const http = servesHttp(flags, command);
  const file = flags.config ?? refuse('--config FILE is missing: the servers to stand in front of');

  const load = async () => {
    const { loadGatewayConfig } = await import('../gateway/config.ts');
    const config = loadGatewayConfig(file, process.env);
    return {
      ...config,
      ...(flags.strict && { strict: true }),
      ...(flags.prefix && { prefix: flags.prefix }),
    };
  };

  let applying = Promise.resolve();
  const applyEdited = async (served: ServedGateway): Promise<void> => {
    try {
      const config = await load();
      await served.apply(config);
      const names = config.upstreams.map(({ name }) => name).join(', ');
      say(`${file} has changed: the gateway now serves ${names}`);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      say(`error: ${why}\nwhat was read before still holds`);
    }
  };
  const watch = async (served: ServedGateway): Promise<void> => {
    const { watchFile } = await import('../gateway/watch.ts');
    watchFile(
      file,
      () => {
        // One after the other: an edit must not overtake the one before it.
        applying = applying.then(() => applyEdited(served));
      },
      { onError: (error) => say(`warning: ${file} is no longer watched: ${error.message}`) },
    );
    say(`watching ${file} for changes`);
  };

  await startGateway({
    http,
    flags,
    config: load,
    transparent: false,
    healthTool: flags.healthTool,
    ...(flags.watch && { onServed: (served) => void watch(served) }),
  });
};

/** Adds the command to the program. */
export const addGateway = (program: Command): void => {
  const command = program
    .command('gateway')
    .description('stand in front of all MCP servers of a configuration file')
    .addOption(
      new Option('--config <file>', 'the mcpServers (or servers) that your client has already')
        .env('MCP_RESILIENCE_CONFIG')
        .argParser(given('the path of a file')),
    )
    .option('--watch', 'take changes of the file; servers that stay the same are left alone')
    .option('--strict', 'end at the start, and refuse clients, while a server cannot be reached')
    .addOption(
      new Option(
        '--prefix <when>',
        "put a server's name in front of its tools: where names collide, always, never",
      ).choices(['auto', 'always', 'never']),
    )
    .option('--no-health-tool', 'do not offer the tool health_check')
    .action(gateway);
  addDoorFlags(command);
};
