import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createFrameReader, encodeFrame, maxFrameBytes } from './frame.ts'
import { createLink } from './link.ts'

test('a reader cuts frames from any pieces', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.tuple(
          fc.json().map((text) => JSON.parse(text) as unknown),
          fc.uint8Array({ maxLength: 300 }),
        ),
        { maxLength: 20 },
      ),
      fc.array(fc.integer({ min: 1, max: 97 }), { minLength: 1 }),
      (messages, sizes) => {
        const whole = Buffer.concat(
          messages.map(([header, bytes], index) => encodeFrame(index + 1, 0, header, bytes)),
        )
        const read = createFrameReader()
        const frames: unknown[] = []
        for (let start = 0, piece = 0; start < whole.length; piece += 1) {
          const size = sizes[piece % sizes.length]!
          for (const frame of read(whole.subarray(start, start + size))) {
            frames.push([frame.header, Buffer.from(frame.bytes).toString('hex')])
          }
          start += size
        }
        expect(JSON.stringify(frames)).toBe(
          JSON.stringify(messages.map(([header, bytes]) => [header, Buffer.from(bytes).toString('hex')])),
        )
      },
    ),
  )
})

test('a reader refuses what is no frame', () => {
  const tooLong = Buffer.alloc(4)
  tooLong.writeUInt32BE(maxFrameBytes + 1)
  expect(() => createFrameReader()(tooLong)).toThrow('frame of')
  expect(() => createFrameReader()(Buffer.from('plain text'))).toThrow('frame of')
})

test('every message arrives once and in order over streams that break anywhere', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 4000 }), { minLength: 1, maxLength: 8 }),
      async (breaks) => {
        const got: unknown[] = []
        let cut = Number.POSITIVE_INFINITY
        const receiver = createLink({ onMessage: (header) => got.push(header) })
        const sender = createLink({ onMessage: () => {} })
        const join = (limit: number) => {
          cut = limit
          receiver.attach(async (bytes) => sender.receive(bytes))
          sender.attach(async (bytes) => {
            // What a broken stream still delivers may end within a frame.
            const passed = bytes.subarray(0, Math.max(0, cut))
            cut -= bytes.length
            if (passed.length > 0) receiver.receive(passed)
          })
        }
        join(breaks[0]!)
        const sent: unknown[] = []
        for (const limit of [...breaks.slice(1), Number.POSITIVE_INFINITY]) {
          for (let index = 0; index < 25; index += 1) {
            sent.push(sent.length)
            await sender.send(sent.length - 1, Buffer.alloc(index))
          }
          join(limit)
        }
        expect(got).toEqual(sent)
      },
    ),
    { numRuns: 50 },
  )
})

test('a sender waits while too much is unacknowledged', async () => {
  const frames: Uint8Array[] = []
  const sender = createLink({ onMessage: () => {}, windowBytes: 1000 })
  sender.attach(async (bytes) => void frames.push(bytes))
  let sent = false
  const waiting = sender.send('large', Buffer.alloc(2000)).then(() => (sent = true))
  await Promise.resolve()
  expect(sent).toBe(false)
  sender.receive(encodeFrame(0, 1))
  await waiting
  expect(sent).toBe(true)
  const blocked = sender.send('more', Buffer.alloc(2000))
  sender.close(new Error('over'))
  await expect(blocked).rejects.toThrow('over')
})
