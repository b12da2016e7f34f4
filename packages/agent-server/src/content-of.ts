import { TuttiError } from '@tutti/core'
import type { CallMessage } from './link/call.ts'
import { contentEndHead, contentHead, packEndHead, packHead } from './wire-change.ts'

/** The content messages that follow a change, until its size has come. Whoever reads it again gets what was not read yet. */
export function contentOf(messages: AsyncIterator<CallMessage>, size: number): AsyncIterable<Uint8Array> {
  let left = size
  return {
    async *[Symbol.asyncIterator]() {
      while (left > 0) {
        const next = await messages.next()
        if (next.done) throw new TuttiError('data_loss', 'The content of a change ended before its size.', {})
        if (next.value.head !== contentHead) {
          throw new TuttiError('data_loss', 'The content of a change is interrupted by another message.', {})
        }
        left -= next.value.bytes.length
        if (left < 0)
          throw new TuttiError('data_loss', 'The content of a change is longer than its size.', {})
        yield next.value.bytes
      }
    },
  }
}

/** The bytes of a pack, until the message that says that it is whole. */
export const packOf = (messages: AsyncIterator<CallMessage>): AsyncGenerator<Uint8Array> =>
  untilEnd(messages, packHead, packEndHead, 'The pack of a commit ended before it was whole.')

/** Content of which the size is not known before its end. */
export const contentUntilEnd = (messages: AsyncIterator<CallMessage>): AsyncGenerator<Uint8Array> =>
  untilEnd(messages, contentHead, contentEndHead, 'The content of a file ended before it was whole.')

async function* untilEnd(
  messages: AsyncIterator<CallMessage>,
  head: string,
  endHead: string,
  problem: string,
): AsyncGenerator<Uint8Array> {
  for (;;) {
    const next = await messages.next()
    const said = next.done ? undefined : next.value.head
    if (said === endHead) return
    if (said !== head) throw new TuttiError('data_loss', problem, {})
    yield next.value.bytes
  }
}
