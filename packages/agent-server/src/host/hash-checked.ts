import { createHash } from 'node:crypto'
import { TuttiError, type BlobId } from '@tutti/core'

/** Passes content through and ends with an error unless it is exactly that of the hash: the inside is not trusted. */
export async function* hashChecked(
  content: AsyncIterable<Uint8Array>,
  hash: BlobId,
): AsyncGenerator<Uint8Array, void, undefined> {
  const digest = createHash('sha256')
  for await (const chunk of content) {
    digest.update(chunk)
    yield chunk
  }
  if (`sha256_${digest.digest('hex')}` !== hash) {
    throw new TuttiError('data_loss', 'Captured content is not that of its hash.', { hash })
  }
}
