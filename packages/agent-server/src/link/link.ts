import { createFrameReader, encodeFrame } from './frame.ts'

/** Messages both ways over a byte stream that may be replaced: each arrives once and in order. */
export interface Link {
  /** Queues a message. Resolves when there is room for another; waiting is what keeps the spool small. */
  send(header: unknown, bytes?: Uint8Array): Promise<void>
  /** Bytes from the current stream. @throws Error when they are not this link's; the stream must be given up. */
  receive(chunk: Uint8Array): void
  /** Sets the stream to write to, the first or a later one: everything not acknowledged is written again. */
  attach(write: (bytes: Uint8Array) => Promise<void>): void
  /** Makes every waiting and later `send` fail. */
  close(reason: Error): void
}

export interface LinkOptions {
  readonly onMessage: (header: unknown, bytes: Uint8Array) => void
  /** Bytes that may wait for an acknowledgement before `send` waits. Default 4 MiB: a slow reader costs no more. */
  readonly windowBytes?: number
}

const ackEveryBytes = 128 << 10
const ackEveryMessages = 32

interface Spooled {
  readonly seq: number
  readonly header: unknown
  readonly bytes: Uint8Array
}

/** @see Link */
export function createLink({ onMessage, windowBytes = 4 << 20 }: LinkOptions): Link {
  let readFrames = createFrameReader()
  let write: ((bytes: Uint8Array) => Promise<void>) | undefined
  let closed: Error | undefined
  let lastSent = 0
  let lastReceived = 0
  let unackedBytes = 0
  let receivedBytes = 0
  let receivedMessages = 0
  const spool: Spooled[] = []
  const waiting: { resolve(): void; reject(error: Error): void }[] = []

  const put = (frame: Uint8Array) => {
    // A stream that fails is noticed by whoever owns it, who attaches another or closes the link.
    write?.(frame).catch(() => {})
  }
  const acknowledge = () => {
    receivedBytes = 0
    receivedMessages = 0
    put(encodeFrame(0, lastReceived))
  }
  const onAck = (ack: number) => {
    while (spool.length > 0 && spool[0]!.seq <= ack) unackedBytes -= spool.shift()!.bytes.length + 64
    if (unackedBytes < windowBytes) for (const waiter of waiting.splice(0)) waiter.resolve()
  }

  return {
    async send(header, bytes = new Uint8Array()) {
      if (closed) throw closed
      lastSent += 1
      spool.push({ seq: lastSent, header, bytes })
      unackedBytes += bytes.length + 64
      put(encodeFrame(lastSent, lastReceived, header, bytes))
      if (unackedBytes >= windowBytes) {
        await new Promise<void>((resolve, reject) => waiting.push({ resolve, reject }))
      }
    },
    receive(chunk) {
      for (const frame of readFrames(chunk)) {
        onAck(frame.ack)
        if (frame.kind === 'ack' || frame.seq <= lastReceived) continue
        if (frame.seq !== lastReceived + 1) throw new Error(`message ${frame.seq} after ${lastReceived}`)
        lastReceived = frame.seq
        receivedBytes += frame.bytes.length
        receivedMessages += 1
        onMessage(frame.header, frame.bytes)
        if (receivedBytes >= ackEveryBytes || receivedMessages >= ackEveryMessages) acknowledge()
      }
    },
    attach(next) {
      write = next
      // The rest of a frame that was cut off never comes.
      readFrames = createFrameReader()
      put(encodeFrame(0, lastReceived))
      // A copy: acknowledgements may come back while it is written.
      for (const { seq, header, bytes } of spool.slice()) put(encodeFrame(seq, lastReceived, header, bytes))
    },
    close(reason) {
      closed ??= reason
      for (const waiter of waiting.splice(0)) waiter.reject(closed)
    },
  }
}
