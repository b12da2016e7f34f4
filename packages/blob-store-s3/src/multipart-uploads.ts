import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  UploadPartCommand,
  type CompletedPart,
  type S3Client,
} from '@aws-sdk/client-s3'
import { setTimeout } from 'node:timers/promises'
import type { CrashPoint } from '@tutti/core'
import { createPartReader, type Part } from './part-reader.ts'
import { retry } from './retry.ts'
import { s3Failure } from './s3-failure.ts'
import type { S3Settings } from './s3-settings.ts'
import type { Slots } from './slots.ts'
import type { SpooledBlob } from './spooled-blob.ts'

const mostParts = 10_000
/** An upload that failed shall not hold its caller for longer; what stays then is aborted a day later. */
const cleanUpMs = 5_000
/** A part that was under way when its caller left may arrive after the abort, and some servers keep it then. */
const abortsAfterMs = [0, 250, 1_000]

export interface MultipartUploads {
  /**
   * Stores a large blob in parts, each with its own hash, which the server checks. Nothing is there before the last step, and what was
   * sent is given up when one fails. False when it is open whether the object is there: with `once` when there is one already, and when
   * the server does not know the upload any more, as when the answer to its last step was lost.
   */
  upload(key: string, blob: SpooledBlob, once: boolean, signal: AbortSignal): Promise<boolean>
}

interface Upload {
  readonly Bucket: string
  readonly Key: string
  readonly UploadId: string | undefined
}

export function createMultipartUploads(
  client: S3Client,
  slots: Slots,
  settings: S3Settings,
  crashPoint: CrashPoint,
): MultipartUploads {
  const { bucket, limits } = settings

  async function sendPart(
    upload: Upload,
    { number, bytes, sha256 }: Part,
    { signal, stop }: { signal: AbortSignal; stop: AbortSignal },
  ) {
    const part = { PartNumber: number, ChecksumSHA256: sha256 }
    const { ETag } = await retry(limits, stop, () => {
      const command = new UploadPartCommand({
        ...upload,
        ...part,
        Body: bytes,
        ContentLength: bytes.length,
      })
      return client.send(command, { abortSignal: signal })
    })
    return { ...part, ETag }
  }

  async function sendParts(upload: Upload, blob: SpooledBlob, signal: AbortSignal): Promise<CompletedPart[]> {
    const reader = createPartReader(blob, Math.max(limits.partBytes, Math.ceil(blob.size / mostParts)))
    const failed = new AbortController()
    const stop = AbortSignal.any([signal, failed.signal])
    const failures: unknown[] = []
    const parts = Array.from({ length: reader.count }, () =>
      slots(stop, async () => sendPart(upload, await reader.next(), { signal, stop })).catch(
        (error: unknown) => {
          failures.push(error)
          failed.abort()
        },
      ),
    )
    // Those under way end first: a part that arrives after the abort of its upload might stay.
    const sent = await Promise.all(parts)
    if (failures.length > 0) throw failures[0]
    reader.check()
    return sent.filter((part) => part !== undefined)
  }

  async function complete(upload: Upload, parts: CompletedPart[], once: boolean, signal: AbortSignal) {
    const command = () =>
      new CompleteMultipartUploadCommand({
        ...upload,
        MultipartUpload: { Parts: parts },
        ...(once && { IfNoneMatch: '*' }),
      })
    return retry(limits, signal, async () => {
      try {
        await client.send(command(), { abortSignal: signal })
        return true
      } catch (error) {
        const { status, name } = s3Failure(error)
        // 409: another writer of the same object is at its own last step; S3 wants a new upload then.
        if (name === 'NoSuchUpload' || status === 412 || status === 409) return false
        throw error
      }
    })
  }

  async function abort(upload: Upload): Promise<void> {
    const signal = AbortSignal.timeout(cleanUpMs)
    await retry(limits, signal, () =>
      client.send(new AbortMultipartUploadCommand(upload), { abortSignal: signal }),
    ).catch(() => {})
  }

  async function abortLater(upload: Upload): Promise<void> {
    for (const pauseMs of abortsAfterMs) {
      await setTimeout(pauseMs, undefined, { ref: false })
      await abort(upload)
    }
  }

  return {
    async upload(key, blob, once, signal) {
      const address = { Bucket: bucket, Key: key }
      const { UploadId } = await retry(limits, signal, () =>
        client.send(
          new CreateMultipartUploadCommand({
            ...address,
            ContentType: 'application/octet-stream',
            ChecksumAlgorithm: 'SHA256',
          }),
          { abortSignal: signal },
        ),
      )
      const upload = { ...address, UploadId }
      let stored = false
      try {
        const parts = await sendParts(upload, blob, signal)
        stored = await crashPoint('blob.multipart', () => complete(upload, parts, once, signal))
      } catch (error) {
        // A server that was restarted may not know its uploads any more.
        if (s3Failure(error).name !== 'NoSuchUpload') throw error
      } finally {
        // Who cancels does not wait for a server that may not answer.
        if (signal.aborted) void abortLater(upload)
        else if (!stored) await abort(upload)
      }
      return stored
    },
  }
}
