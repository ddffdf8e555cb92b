/**
 * @module
 * The link to a server that runs as our child and speaks over its stdin and stdout, one message
 * a line (2025-11-25, basic/transports, "stdio").
 */
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cancelledId, type JSONRPCMessage, type RequestId } from '../mcp/jsonrpc.ts';
import { type Frame, LineFramer } from '../mcp/transports/line-framer.ts';
import type { Clock, Timer } from '../resilience/clock.ts';
import { createFailure } from '../resilience/failure.ts';
import { clean } from '../resilience/inspect.ts';
import { childEnvironment } from './child-environment.ts';
import { type ChildCommand, endGroup, endRest, spawnGroup } from './child-group.ts';
import { ChildStderr } from './child-stderr.ts';
import { masked } from './config-secrets.ts';
import { LineWriter } from './line-writer.ts';
import { LinkError, notOpen, tooLong } from './link-failure.ts';
import { answeredId, idOfCut, parseMessages, type Report, requestId } from './link-message.ts';
import type { Link, LinkEnd } from './types.ts';

/** Settings of a stdio link. */
export interface StdioLinkSettings extends ChildCommand {
  readonly name: string;
  readonly maxMessageBytes: number;
  /** Values that must never be shown, longest first. */
  readonly secrets: readonly string[];
  readonly clock: Clock;
  /** Takes lines for people. */
  readonly log: (line: string) => void;
  readonly report: Report;
}

/** Milliseconds that a child's last output has to arrive, when somebody else holds its pipes. */
const DRAIN = 250;
/** Characters shown of the first line that is no message. */
const SHOWN = 120;

/**
 * Lines on stdout that are no JSON-RPC, such as banners, are left out, reported once and counted.
 * So are messages beyond `maxMessageBytes`; where one was the answer to a request, that request
 * is lost at once.
 *
 * A message that aborts while it waits for the child to read is taken back (`line-writer.ts`).
 */
export class StdioLink implements Link {
  onmessage: Link['onmessage'];
  onlost: Link['onlost'];
  onend: Link['onend'];

  readonly #settings: StdioLinkSettings;
  readonly #framer: LineFramer;
  readonly #stderr: ChildStderr;
  /** Requests without an answer yet. */
  readonly #asked = new Set<RequestId>();
  #child: ChildProcessWithoutNullStreams | undefined;
  #writer: LineWriter | undefined;
  #state: 'new' | 'starting' | 'open' | 'closing' | 'ended' = 'new';
  #ending: Timer | undefined;
  #ignored = 0;
  /** Settled when the child and all that it started have ended. */
  readonly #over: Promise<void>;
  readonly #settle: () => void;

  constructor(settings: StdioLinkSettings) {
    this.#settings = settings;
    this.#framer = new LineFramer(settings.maxMessageBytes);
    this.#stderr = new ChildStderr(settings);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#over = promise;
    this.#settle = resolve;
  }

  get facts(): Link['facts'] & { readonly ignoredLines: number } {
    const pid = this.#state === 'ended' ? undefined : this.#child?.pid;
    return { ignoredLines: this.#ignored, ...(pid !== undefined && { pid }) };
  }

  async open(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.#state !== 'new') throw notOpen();
    this.#state = 'starting';
    const { env, ...command } = this.#settings;
    try {
      const child = spawnGroup({ ...command, env: childEnvironment(env, process.env) });
      this.#child = child;
      this.#writer = new LineWriter(child.stdin);
      this.#attach(child);
      await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    } catch (error) {
      this.#state = 'ended';
      this.#ending?.cancel();
      this.#settle();
      throw this.#notStarted(error);
    }
    if (this.#state !== 'starting') throw notOpen();
    this.#state = 'open';
  }

  send(message: JSONRPCMessage, signal?: AbortSignal): Promise<void> {
    const writer = this.#writer;
    if (writer === undefined || this.#state !== 'open') return Promise.reject(notOpen());
    if (signal?.aborted) return Promise.reject(signal.reason);
    const id = requestId(message);
    if (id !== undefined) this.#asked.add(id);
    const cancelled = cancelledId(message);
    if (cancelled !== undefined) this.#asked.delete(cancelled);
    return writer.write(JSON.stringify(message), signal).catch((error: unknown) => {
      if (id !== undefined) this.#asked.delete(id);
      throw error;
    });
  }

  initialized(): void {}

  close(): Promise<void> {
    if (this.#state === 'new') {
      this.#state = 'ended';
      this.#settle();
    } else if (this.#child !== undefined && ['starting', 'open'].includes(this.#state)) {
      this.#state = 'closing';
      this.#writer?.end();
      this.#ending = endGroup(this.#child, this.#settings.clock);
    }
    return this.#over;
  }

  #attach(child: ChildProcessWithoutNullStreams): void {
    child.stdout.on('data', (chunk: Buffer) => {
      for (const frame of this.#framer.push(chunk)) this.#receive(frame);
    });
    child.stderr.on('data', (chunk: Buffer) => this.#stderr.push(chunk));
    // A pipe that breaks is seen by the write that fails, or by how the child ends.
    for (const broken of [child, child.stdin, child.stdout, child.stderr]) {
      broken.on('error', () => {});
    }
    child.once('exit', (code, signal) => {
      this.#ending?.cancel();
      const reason = code === null ? `killed by ${signal}` : `exited with code ${code}`;
      const closed = this.#state === 'closing';
      this.#state = 'ended';
      const finish = (): void => {
        child.off('close', finish);
        drain.cancel();
        void this.#finish(child, { kind: closed ? 'closed' : 'exited', reason });
      };
      // What it said last is still in its pipes, which a child of its own may hold open.
      const drain = this.#settings.clock.setTimer(DRAIN, finish, true);
      child.once('close', finish);
    });
  }

  async #finish(child: ChildProcessWithoutNullStreams, end: LinkEnd): Promise<void> {
    for (const frame of this.#framer.end()) this.#receive(frame);
    this.#stderr.end();
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    const { lastWords } = this.#stderr;
    const whole = { ...end, ...(lastWords !== undefined && { lastWords }) };
    const rest = endRest(child, this.#settings.clock);
    // Who waits for answers is told at once; who closed waits until all of it has ended.
    if (end.kind !== 'closed') this.onend?.(whole);
    await rest;
    if (end.kind === 'closed') this.onend?.(whole);
    this.#settle();
  }

  #receive(frame: Frame): void {
    if (frame.kind === 'too-long') {
      this.#lose(frame.head, frame.tail);
      return;
    }
    const text = frame.kind === 'line' ? frame.text : '';
    const messages = /^[{[]/.test(text) ? parseMessages(text) : undefined;
    if (messages === undefined) {
      const shown = this.#shown(text, SHOWN) || 'not UTF-8';
      this.#ignore('no-message', `what is no JSON-RPC message (${shown})`);
      return;
    }
    for (const message of messages) {
      const id = answeredId(message);
      if (id !== undefined) this.#asked.delete(id);
      this.onmessage?.(message, undefined);
    }
  }

  /** A message that is too long: its request is lost now, not when its time is over. */
  #lose(head: string, tail: string): void {
    const { maxMessageBytes } = this.#settings;
    const id = idOfCut(head, tail);
    if (id !== undefined && this.#asked.delete(id)) this.onlost?.(id, tooLong(maxMessageBytes));
    else this.#ignore('too-long', `a line of more than ${maxMessageBytes} bytes`);
  }

  #ignore(kind: Parameters<Report>[0], what: string): void {
    this.#ignored += 1;
    this.#settings.report(kind, `wrote ${what} to stdout`);
  }

  #shown(text: string, length?: number): string {
    return clean(masked(text, this.#settings.secrets), length);
  }

  #notStarted(error: unknown): LinkError {
    const { command, cwd } = this.#settings;
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      cwd !== undefined && !existsSync(cwd)
        ? `its working directory ${cwd} does not exist`
        : code === 'ENOENT'
          ? `the command "${command}" was not found; check its name, or give its full path`
          : code === 'EACCES'
            ? `the command "${command}" may not be run (EACCES); make it executable`
            : `the command "${command}" failed to start: ${message}`;
    const permanent = code === 'ENOENT' || code === 'EACCES';
    return new LinkError(
      createFailure('UPSTREAM_UNAVAILABLE', {
        message: `The upstream could not be started: ${this.#shown(why)}.`,
        delivery: 'not_sent',
        ...(permanent && { severity: 'permanent', retryable: false }),
        cause: error,
      }),
    );
  }
}
