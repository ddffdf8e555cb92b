/**
 * @module
 * What upstreams say without being asked, and what they ask, on its way to the client.
 */
import type { Source } from './catalog.ts';
import { changedLists, LIST_CHANGES, LISTS, tellsOfChanges } from './catalog-kinds.ts';
import { type ClientRequests, cannotAsk } from './relay-client.ts';
import type { MethodSession } from './relay-methods.ts';
import type { RelayNotifier } from './relay-notifier.ts';
import type { RunningRequests } from './relay-running.ts';
import type { SourceListeners } from './relay-sources.ts';
import type { Json, UpstreamRequest } from './types.ts';

/** The session to which it goes. */
export interface ListeningSession {
  /** There is one upstream, and it is shown as it is. */
  readonly transparent: boolean;
  readonly running: RunningRequests;
  readonly notifier: RelayNotifier;
  readonly client: ClientRequests;
  readonly methods: Pick<MethodSession, 'logLevel' | 'subscriptions'>;
  /** Capabilities that the client declared. */
  readonly capabilities: () => Json;
}

/** What the session that has ended knew, the one that takes its place has to be told. */
const renew = (source: Source, { logLevel, subscriptions }: ListeningSession['methods']): void => {
  const again: UpstreamRequest[] = [];
  if (logLevel) again.push({ method: 'logging/setLevel', params: logLevel });
  for (const [uri, { name }] of subscriptions) {
    if (name === source.name) again.push({ method: 'resources/subscribe', params: { uri } });
  }
  // What it refuses now, it would have refused the client as well.
  for (const request of again) source.session.request(request).catch(() => {});
};

/** Makes the listeners of a client session. */
export const relayListeners = (session: ListeningSession): SourceListeners => {
  const { transparent, running, notifier, client, methods, capabilities } = session;

  /** A client is told of changes only if it was promised to be. */
  const promised = (source: Source, method: string): boolean =>
    !transparent ||
    changedLists(method).some((kind) => tellsOfChanges(source.session.initializeResult, kind));

  const changedFor = (source: Source): void => {
    for (const method of LIST_CHANGES) if (promised(source, method)) notifier.changed(method);
  };

  return {
    onrequest: async (source, method, params, { signal, related }) => {
      if (method === 'ping') return {};
      const refused = cannotAsk(method, capabilities());
      if (refused) throw refused;
      await notifier.begun(signal);
      const id = running.relatedTo(source.name, related);
      const request = id === undefined ? undefined : running.get(id);
      return client.ask(method, params, {
        // Who cancels a call does not want to be asked about it any more either.
        signal: request ? AbortSignal.any([signal, request.abort.signal]) : signal,
        related: id,
        otherwise: () => running.latestAt(source.name),
        onProgress: (progress) => source.session.notify('notifications/progress', progress),
      });
    },
    onnotification: (source, method, params, related) => {
      const kinds = changedLists(method);
      for (const kind of kinds) source.lists[kind].invalidate();
      if (kinds.length === 0 || (transparent && promised(source, method))) {
        notifier.send(method, params, running.relatedTo(source.name, related));
      } else if (!transparent) {
        notifier.changed(method);
      }
    },
    onlate: (source, kind) => {
      const { changed } = LISTS[kind];
      if (promised(source, changed)) notifier.changed(changed);
    },
    onreconnected: (source) => {
      changedFor(source);
      renew(source, methods);
    },
    onreplaced: (added) => {
      for (const method of LIST_CHANGES) notifier.changed(method);
      for (const source of added) renew(source, methods);
    },
  };
};
