/**
 * @module
 * What a server offers beside tools, without any SDK: texts that can be read (resources) and
 * texts that start a conversation (prompts). Both are small and fixed: one page each.
 */

/** A text that clients can read (2025-11-25, server/resources). */
export interface Resource {
  /** Such as `chaos://playbook`. Unique. */
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  /** Such as `text/markdown`. */
  readonly mimeType: string;
  /** The text as it is now. */
  readonly read: () => string | Promise<string>;
}

/** One argument of a prompt; all arguments are strings in the protocol. */
interface PromptArgument {
  readonly name: string;
  readonly description: string;
  /** Default false. */
  readonly required?: boolean;
}

/** A prompt that a person picks, filled in (2025-11-25, server/prompts). */
export interface Prompt {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly arguments?: readonly PromptArgument[];
  /**
   * What the user says with it. Called with the arguments that it lists, all of them strings,
   * the required ones present.
   *
   * @throws Error whose message tells the caller which argument is wrong
   */
  readonly text: (args: Readonly<Record<string, string>>) => string;
}
