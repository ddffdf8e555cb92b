#!/usr/bin/env node
/**
 * @module
 * The command. Each of its ways in is a file of `commands/`, which loads what it needs only
 * when it is the one that runs.
 */
import { Command } from 'commander';
import { addCheck } from './commands/check.ts';
import { USAGE_ERROR } from './commands/command-line.ts';
import { addDrill } from './commands/drill.ts';
import { addGateway } from './commands/gateway.ts';
import { addServe } from './commands/serve.ts';
import { addWrap } from './commands/wrap.ts';
import { VERSION } from './version.ts';

const program = new Command('mcp-resilience')
  .description(
    'Resilience for MCP servers: deadlines, retries, breakers and limits, in OpenTelemetry.',
  )
  .version(VERSION)
  .showHelpAfterError('(see mcp-resilience --help)')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : USAGE_ERROR));

addServe(program);
addWrap(program);
addGateway(program);
addCheck(program);
addDrill(program);

await program.parseAsync();
