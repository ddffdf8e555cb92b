/**
 * @module
 * What all client sessions of a gateway share.
 */
import type { ListKind } from './catalog-kinds.ts';
import type { GatewayChaos } from './gateway-chaos.ts';
import type { NameTable, NamingOptions } from './naming.ts';
import type { OwnOffer } from './own-offer.ts';
import type { GatewayFacts } from './relay-initialize.ts';
import type { SourceOptions } from './relay-sources.ts';

/** What a client session is made of. */
export interface RelayContext extends SourceOptions {
  readonly gateway: GatewayFacts;
  /** Every upstream must be there, or a client is refused. */
  readonly strict: boolean;
  /** May be alive. */
  readonly naming: () => NamingOptions;
  /** Called when `naming` has changed. Returns how to stop it. */
  onRenamed(listener: () => void): () => void;
  /** What the gateway itself offers. */
  readonly own?: OwnOffer | undefined;
  /** Fault injection, where it is on. */
  readonly chaos?: Pick<GatewayChaos, 'call'> | undefined;
  /** Told of what a session still does that has ended: its servers are being closed. */
  readonly onClosing: (closed: Promise<void>) => void;
  /** Told of the name under which something of its own is listed. */
  readonly onOwnName: (kind: 'tools' | 'prompts', name: string) => void;
  readonly onNames: (kind: 'tools' | 'prompts', table: NameTable) => void;
  /** An upstream did not give a list, and clients go on without it. */
  readonly onMissing: (upstream: string, kind: ListKind, error: unknown) => void;
}
