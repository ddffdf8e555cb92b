/**
 * @module
 * Bytes that arrive in pieces, kept at the cost of bytes.
 */

const SMALLEST = 1024;
const NO_ROOM = new Uint8Array();

/**
 * Puts pieces together. They are copied, into room that doubles: kept as they come, pieces of one
 * byte, which any peer can send, would cost a hundred times what they carry.
 */
export class ByteCollector {
  /** The first piece, as it came: mostly it is the only one. */
  #first: Uint8Array | undefined;
  #room = NO_ROOM;
  #size = 0;

  /** Bytes so far. */
  get size(): number {
    return this.#size;
  }

  /** The piece must not change afterwards. */
  add(piece: Uint8Array): void {
    if (this.#size === 0) {
      this.#first = piece;
      this.#size = piece.length;
      return;
    }
    const first = this.#first;
    if (first !== undefined) {
      this.#first = undefined;
      this.#size = 0;
      this.#copy(first);
    }
    this.#copy(piece);
  }

  #copy(piece: Uint8Array): void {
    const size = this.#size + piece.length;
    if (size > this.#room.length) {
      const room = new Uint8Array(Math.max(size, 2 * this.#room.length, SMALLEST));
      room.set(this.#room.subarray(0, this.#size));
      this.#room = room;
    }
    this.#room.set(piece, this.#size);
    this.#size = size;
  }

  /** All bytes so far, which are then no longer held here. */
  take(): Buffer {
    const { buffer, byteOffset } = this.#first ?? this.#room;
    const bytes = Buffer.from(buffer, byteOffset, this.#size);
    this.#first = undefined;
    this.#room = NO_ROOM;
    this.#size = 0;
    return bytes;
  }
}
