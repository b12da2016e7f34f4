import { TuttiError } from '@tutti/core'
import type { CallMessage } from './link/call.ts'
import { contentHead } from './wire-change.ts'

/** The content messages that follow a change, until its size has come. */
export async function* contentOf(
  messages: AsyncIterator<CallMessage>,
  size: number,
): AsyncGenerator<Uint8Array> {
  let left = size
  while (left > 0) {
    const next = await messages.next()
    if (next.done) throw new TuttiError('data_loss', 'The content of a change ended before its size.', {})
    if (next.value.head !== contentHead) {
      throw new TuttiError('data_loss', 'The content of a change is interrupted by another message.', {})
    }
    left -= next.value.bytes.length
    if (left < 0) throw new TuttiError('data_loss', 'The content of a change is longer than its size.', {})
    yield next.value.bytes
  }
}
