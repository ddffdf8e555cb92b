/**
 * @module
 * `mcp-resilience drill`: runs drills and says for each expectation whether it was met. Exit
 * codes: 0 when all were, 1 when one was not, 2 when it was called wrongly.
 */
import { statSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, extname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Command, Option } from 'commander';
import type { DrillEnvironment, RunnableDrill } from '../chaos/drill-environment.ts';
import type { CheckServer } from '../chaos/drill-file.ts';
import type { DrillResult } from '../chaos/drill-verdict.ts';
import { given, refuse, runUntilTheEnd, say } from './command-line.ts';

interface Flags {
  readonly list?: boolean;
  readonly file?: string;
  readonly json?: string;
  readonly junit?: string;
}

/** This command, to start servers with: the sources run as they are, and so does the package. */
const COMMAND = [
  process.execPath,
  fileURLToPath(new URL(`../cli${extname(import.meta.filename)}`, import.meta.url)),
];

const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** What `serve` would say of a configuration. */
const serverCheck = async (): Promise<CheckServer> => {
  const { ConfigError, parseConfig } = await import('../config.ts');
  return (config) => {
    try {
      parseConfig(JSON.stringify(config), 'server.config');
      return [];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const [, ...problems] = error.message.split('\n');
      return problems.map((problem) => problem.replace(/^ {2}- /, ''));
    }
  };
};

/** The drills to run: the one of the file, the one that is named, or all there are. */
const chosen = async (
  name: string | undefined,
  { file }: Flags,
): Promise<readonly RunnableDrill[]> => {
  if (file !== undefined) {
    const [{ DrillError, loadDrill }, { createDrill }] = await Promise.all([
      import('../chaos/drill-file.ts'),
      import('../chaos/drill-run.ts'),
    ]);
    try {
      return [createDrill(loadDrill(file, await serverCheck()))];
    } catch (error) {
      if (error instanceof DrillError) return refuse(error.message);
      throw error;
    }
  }
  const { drills } = await import('../chaos/drills/index.ts');
  if (name === undefined) return drills;
  const found = drills.filter((drill) => drill.name === name);
  if (found.length > 0) return found;
  return refuse(
    `there is no drill "${name}": there are ${drills.map(({ name }) => name).join(', ')}`,
  );
};

/** Refuses a report that could not be written, before anything is run. */
const checkReport = (flag: string, file: string | undefined): void => {
  if (file === undefined) return;
  const folder = dirname(resolve(file));
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    refuse(`--${flag} ${file}: there is no folder ${folder}`);
  }
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory()) {
    refuse(`--${flag} ${file}: it is a folder; give the path of a file`);
  }
};

/** Aborts on the first signal, so that what was started is ended; the second ends at once. */
const abortOnSignal = (): { readonly signal: AbortSignal; readonly exitCode: () => number } => {
  const controller = new AbortController();
  let exitCode = 1;
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      exitCode = 128 + constants.signals[name];
      if (controller.signal.aborted) process.exit(exitCode);
      say('ending: what was started is ended; a second signal does so at once');
      controller.abort(new Error(`ended by ${name}`));
    });
  }
  return { signal: controller.signal, exitCode: () => exitCode };
};

const runAll = async (
  drills: readonly RunnableDrill[],
  environment: DrillEnvironment,
): Promise<readonly DrillResult[]> => {
  const { verdictLines } = await import('../chaos/drill-report.ts');
  const results: DrillResult[] = [];
  for (const drill of drills) {
    say(`${drill.name}: ${drill.hypothesis}`);
    const result = await drill.run(environment);
    results.push(result);
    for (const line of verdictLines(result)) print(line);
  }
  return results;
};

const drill = async (name: string | undefined, flags: Flags): Promise<void> => {
  const { list, file, json, junit } = flags;
  if (name !== undefined && file !== undefined) {
    refuse('a name and --file exclude each other; give one of them');
  }
  checkReport('json', json);
  checkReport('junit', junit);
  const drills = await chosen(name, flags);
  if (list) {
    for (const { name, hypothesis } of drills) print(`${name}: ${hypothesis}`);
    return;
  }
  const [{ forwardingOf }, { systemClock }, { jsonReport, junitReport, totalLine }] =
    await Promise.all([
      import('../chaos/drill-sink.ts'),
      import('../resilience/clock.ts'),
      import('../chaos/drill-report.ts'),
    ]);
  let forwarding: DrillEnvironment['forwarding'];
  try {
    forwarding = forwardingOf(process.env);
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error));
  }
  const { signal, exitCode } = abortOnSignal();
  const environment: DrillEnvironment = {
    command: COMMAND,
    env: process.env,
    clock: systemClock,
    signal,
    say,
    ...(forwarding && { forwarding }),
  };
  let results: readonly DrillResult[];
  try {
    results = await runAll(drills, environment);
  } catch (error) {
    if (!signal.aborted) throw error;
    process.exit(exitCode());
  }
  if (results.length > 1) print(totalLine(results));
  if (json !== undefined) writeFileSync(json, jsonReport(results));
  if (junit !== undefined) writeFileSync(junit, junitReport(results));
  process.exit(results.every(({ pass }) => pass) ? 0 : 1);
};

interface KnowledgeFlags {
  readonly store: string;
  readonly protected?: boolean;
}

/** The server of the drill `slow-shard`, in a process of its own. */
const serveKnowledge = async ({ store, protected: isProtected }: KnowledgeFlags): Promise<void> => {
  const { serveKnowledge: start } = await import('../chaos/drills/knowledge-server.ts');
  runUntilTheEnd(await start({ store, isProtected: isProtected === true, env: process.env, say }));
};

/** Adds the command to the program. */
export const addDrill = (program: Command): void => {
  const path = given('the path of a file');
  program
    .command('drill')
    .description('break something on purpose, and say whether the reaction is the expected one')
    .argument('[name]', 'the drill to run; without one all of them are run')
    .option('--list', 'say which drills there are, and what each is to show')
    .addOption(new Option('--file <file>', 'run the drill in this file').argParser(path))
    .addOption(new Option('--json <file>', 'write the report as JSON').argParser(path))
    .addOption(new Option('--junit <file>', 'write the report as JUnit XML').argParser(path))
    .action(drill);
  program
    .command('drill-knowledge', { hidden: true })
    .requiredOption('--store <url>', 'the store to search')
    .option('--protected', 'with policies; without them nothing of ours is in it')
    .action(serveKnowledge);
};
