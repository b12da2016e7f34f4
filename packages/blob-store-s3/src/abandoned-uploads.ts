import { AbortMultipartUploadCommand, ListMultipartUploadsCommand, type S3Client } from '@aws-sdk/client-s3'
import type { S3Settings } from './s3-settings.ts'

const maxAgeMs = 24 * 60 * 60 * 1000

/**
 * Aborts multipart uploads of this store that are older than a day: their writers were killed, and their parts cost money for ever. Not
 * left to a lifecycle rule, which several servers do not have. What fails is left to the next time.
 */
export async function abortAbandonedUploads(
  client: S3Client,
  { bucket, folder }: S3Settings,
  signal: AbortSignal,
  now = Date.now(),
): Promise<void> {
  const page = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: folder }), {
    abortSignal: signal,
  })
  for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
    if (!Key || !UploadId || !Initiated || now - Initiated.getTime() < maxAgeMs) continue
    const upload = { Bucket: bucket, Key, UploadId }
    await client.send(new AbortMultipartUploadCommand(upload), { abortSignal: signal })
  }
}
