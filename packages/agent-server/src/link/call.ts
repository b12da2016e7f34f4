import { maxFrameBytes } from './frame.ts'

/** One message of a call: what it says, and raw bytes. */
export interface CallMessage {
  readonly head: unknown
  readonly bytes: Uint8Array
}

/** Either end of one call: messages both ways while it runs. */
export interface CallStream {
  /** Resolves when the other side has room: it holds at most a window of what it has not read. */
  send(head: unknown, bytes?: Uint8Array): Promise<void>
  /** No more from this side. */
  end(): void
  /** What the other side sends, until it ends. Reading makes room. */
  readonly messages: AsyncIterable<CallMessage>
}

export interface CallPlumbing extends CallStream {
  onMessage(message: CallMessage): void
  onEnd(): void
  onCredit(bytes: number): void
  fail(error: Error): void
}

/** What one direction of one call may have under way, in bytes. */
const windowBytes = 1 << 20
/** So that many small messages are bounded as well. */
const costOf = (bytes: Uint8Array): number => bytes.length + 256

export interface CallWire {
  message(head: unknown, bytes: Uint8Array): Promise<void>
  end(): void
  credit(bytes: number): void
}

/** The flow control of one call: credits, so that a call nobody reads stops without stopping the others. */
export function createCallStream(wire: CallWire): CallPlumbing {
  let room = windowBytes
  let owed = 0
  let queued = 0
  let ended = false
  let failure: Error | undefined
  const received: CallMessage[] = []
  const senders: { resolve(): void; reject(error: Error): void }[] = []
  let wakeReader: (() => void) | undefined

  const consumed = (message: CallMessage) => {
    queued -= costOf(message.bytes)
    owed += costOf(message.bytes)
    if (owed < windowBytes / 4) return
    wire.credit(owed)
    owed = 0
  }

  async function* read(): AsyncGenerator<CallMessage> {
    for (;;) {
      const message = received.shift()
      if (message) {
        consumed(message)
        yield message
      } else if (failure) throw failure
      else if (ended) return
      else await new Promise<void>((resolve) => (wakeReader = resolve))
    }
  }

  return {
    async send(head, bytes = new Uint8Array()) {
      while (room <= 0 && !failure) {
        await new Promise<void>((resolve, reject) => senders.push({ resolve, reject }))
      }
      if (failure) throw failure
      room -= costOf(bytes)
      await wire.message(head, bytes)
    },
    end: () => wire.end(),
    messages: { [Symbol.asyncIterator]: read },
    onMessage(message) {
      queued += costOf(message.bytes)
      // One message may overdraw the window; an end that sends on regardless would fill this one's memory.
      if (queued > windowBytes + maxFrameBytes) throw new Error('the other end sends more than it may')
      received.push(message)
      wakeReader?.()
    },
    onEnd() {
      ended = true
      wakeReader?.()
    },
    onCredit(bytes) {
      // Credit is given back, never invented: else the other end decides how much waits in the memory of this one.
      if (room + bytes > windowBytes) throw new Error('the other end gives more room than it has')
      room += bytes
      if (room > 0) for (const sender of senders.splice(0)) sender.resolve()
    },
    fail(error) {
      failure ??= error
      wakeReader?.()
      for (const sender of senders.splice(0)) sender.reject(failure)
    },
  }
}
