/**
 * One frame on the wire: u32 length of what follows, u8 kind, u32 seq, u32 ack, body. The body of a message is u32 length of a JSON
 * header, the header, and raw bytes. All numbers big endian. `seq` counts messages from 1; an ack frame has seq 0.
 */
export interface Frame {
  readonly kind: 'message' | 'ack'
  readonly seq: number
  readonly ack: number
  readonly header: unknown
  readonly bytes: Uint8Array
}

const kinds = ['message', 'ack'] as const
const fixedBytes = 9
/** Above any frame that is ever made: a longer one is damage or an attack, not to be allocated for. */
export const maxFrameBytes = 4 << 20

const none = new Uint8Array()

export function encodeFrame(seq: number, ack: number, header?: unknown, bytes: Uint8Array = none): Buffer {
  const json = header === undefined ? undefined : Buffer.from(JSON.stringify(header))
  const bodyBytes = json ? 4 + json.length + bytes.length : 0
  const frame = Buffer.allocUnsafe(4 + fixedBytes + bodyBytes)
  frame.writeUInt32BE(fixedBytes + bodyBytes, 0)
  frame.writeUInt8(json ? 0 : 1, 4)
  frame.writeUInt32BE(seq, 5)
  frame.writeUInt32BE(ack, 9)
  if (json) {
    frame.writeUInt32BE(json.length, 13)
    frame.set(json, 17)
    frame.set(bytes, 17 + json.length)
  }
  return frame
}

/** Cuts a byte stream into frames. @throws Error when the bytes are not frames; the stream is unusable then. */
export function createFrameReader(): (chunk: Uint8Array) => Frame[] {
  let parts: Uint8Array[] = []
  let length = 0
  let wanted = 4

  return (chunk) => {
    parts.push(chunk)
    length += chunk.length
    if (length < wanted) return []
    const data =
      parts.length === 1 ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length) : Buffer.concat(parts)
    const frames: Frame[] = []
    let offset = 0
    for (;;) {
      wanted = 4
      if (data.length - offset < 4) break
      const size = data.readUInt32BE(offset)
      if (size < fixedBytes || size > maxFrameBytes) throw new Error(`frame of ${size} bytes`)
      wanted = 4 + size
      if (data.length - offset < wanted) break
      frames.push(decodeFrame(data.subarray(offset + 4, offset + wanted)))
      offset += wanted
    }
    parts = offset === data.length ? [] : [data.subarray(offset)]
    length = data.length - offset
    return frames
  }
}

function decodeFrame(frame: Buffer): Frame {
  const kind = kinds[frame.readUInt8(0)]
  if (!kind) throw new Error(`frame kind ${frame.readUInt8(0)}`)
  const base = { kind, seq: frame.readUInt32BE(1), ack: frame.readUInt32BE(5) }
  if (kind === 'ack') return { ...base, header: undefined, bytes: none }
  const jsonBytes = frame.readUInt32BE(9)
  if (13 + jsonBytes > frame.length) throw new Error('frame header longer than its frame')
  return {
    ...base,
    header: JSON.parse(frame.toString('utf8', 13, 13 + jsonBytes)),
    bytes: frame.subarray(13 + jsonBytes),
  }
}
