import { TuttiError, cancelledBy, type BlobId } from '@tutti/core'
import type { MultipartUploads } from './multipart-uploads.ts'
import { s3Error } from './s3-error.ts'
import type { S3Objects } from './s3-objects.ts'
import type { S3Settings } from './s3-settings.ts'
import { sha256Base64 } from './sha256-base64.ts'
import type { Slots } from './slots.ts'
import type { SpooledBlob } from './spooled-blob.ts'

const mostRounds = 4

/** What stands under a blob's name, as far as the server tells without sending it. */
type Standing = 'absent' | 'same' | 'different'

/** Brings a blob whose hash is known under a name: its own in the store, or another in the archive. */
export type BlobWriter = (key: string, blob: SpooledBlob, signal: AbortSignal) => Promise<void>

/**
 * An answer "is there already" is looked into in every case: it may be the blob of another writer, our own whose first answer was lost,
 * or something that somebody left there cut off, which is replaced.
 */
export function createBlobWriter(
  objects: S3Objects,
  uploads: MultipartUploads,
  slots: Slots,
  settings: S3Settings,
): BlobWriter {
  const { limits, conditionalWrites } = settings

  async function standing(key: string, { id, size }: SpooledBlob, signal: AbortSignal): Promise<Standing> {
    const found = await objects.inspect(key, signal)
    if (!found) return 'absent'
    const sha256 = sha256Base64(id)
    return found.size === size && (found.sha256 ?? sha256) === sha256 ? 'same' : 'different'
  }

  async function send(key: string, blob: SpooledBlob, once: boolean, signal: AbortSignal): Promise<boolean> {
    if (blob.size > limits.singlePutBytes) return uploads.upload(key, blob, once, signal)
    const put = async () => {
      const bytes = await blob.read(0, blob.size)
      return objects.put(key, bytes, sha256Base64(blob.id), once, signal)
    }
    return blob.onDisk ? slots(signal, put) : put()
  }

  async function write(key: string, blob: SpooledBlob, signal: AbortSignal): Promise<void> {
    const look = !conditionalWrites || blob.size >= limits.lookFirstBytes
    let known: Standing = look ? await standing(key, blob, signal) : 'absent'
    // More than once only when others store and delete the same object meanwhile.
    for (let round = 1; known !== 'same'; round += 1) {
      if (round > mostRounds) throw unsettled(key, blob.id)
      if (await send(key, blob, conditionalWrites && known === 'absent', signal)) return
      known = await standing(key, blob, signal)
    }
  }

  const unsettled = (key: string, id: BlobId) =>
    new TuttiError(
      'unavailable',
      `Object ${key} of bucket "${settings.bucket}" at ${settings.where} came and went while it was stored. See who else writes there, then try again.`,
      { id, reason: 'unsettled', bucket: settings.bucket, endpoint: settings.where },
    )

  return async (key, blob, signal) => {
    try {
      await write(key, blob, signal)
    } catch (error) {
      throw signal.aborted ? cancelledBy(signal) : s3Error(error, settings)
    }
  }
}
