/**
 * @module
 * The lean client's side of a child: lines of JSON, and what is due in one turn of the event loop
 * in one write.
 */
import { spawn } from 'node:child_process';
import type { UpstreamAddress } from '../../src/gateway/types.ts';
import type { Answer, Wire } from './client-lean.ts';

/** Starts the child. */
export const openStdio = ({
  command,
  args,
  env,
}: Extract<UpstreamAddress, { kind: 'stdio' }>): Wire => {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const pending = new Map<unknown, PromiseWithResolvers<Answer>>();
  const exited = new Promise<void>((resolve) => {
    child.once('exit', (code) => {
      for (const { reject } of pending.values()) reject(new Error(`${args[0]} ended with ${code}`));
      resolve();
    });
  });
  let due = '';
  const flush = (): void => {
    child.stdin.write(due);
    due = '';
  };
  const write = (message: string): void => {
    if (due === '') setImmediate(flush);
    due += `${message}\n`;
  };
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const answer = JSON.parse(line) as Answer;
      pending.get(answer.id)?.resolve(answer);
    }
  });
  return {
    ask: (id, message) => {
      const asked = Promise.withResolvers<Answer>();
      pending.set(id, asked);
      write(message);
      return asked.promise.finally(() => pending.delete(id));
    },
    tell: async (message) => write(message),
    pid: child.pid,
    close: async () => {
      child.stdin.end();
      const timer = setTimeout(() => child.kill(), 2_000);
      await exited;
      clearTimeout(timer);
    },
  };
};
