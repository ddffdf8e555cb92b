/**
 * @module
 * Bytes that arrive in pieces, kept at the cost of bytes.
 */

const SMALLEST = 1024;

/**
 * Puts pieces together. They are copied, into room that doubles: kept as they come, pieces of one
 * byte, which any peer can send, would cost a hundred times what they carry.
 */
export class ByteCollector {
  #room = new Uint8Array();
  #size = 0;

  /** Bytes so far. */
  get size(): number {
    return this.#size;
  }

  add(piece: Uint8Array): void {
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
    const { buffer, byteOffset } = this.#room;
    const bytes = Buffer.from(buffer, byteOffset, this.#size);
    this.#room = new Uint8Array();
    this.#size = 0;
    return bytes;
  }
}
