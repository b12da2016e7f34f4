import { GetObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import type { BlobStore } from '@tutti/blob-store'
import { checkRead } from '@tutti/blob-store/adapter'
import { TuttiError, orCancelled } from '@tutti/core'
import { s3Error } from './s3-error.ts'
import { proofName } from './s3-objects.ts'
import type { S3Settings } from './s3-settings.ts'
import { sha256Base64 } from './sha256-base64.ts'

const longestMs = 7 * 24 * 60 * 60 * 1000
const largestPut = 5 * 2 ** 30

export type SignedRequests = Required<Pick<BlobStore, 'signedDownload' | 'signedUpload'>>

/** The client is one on the address that clients reach. Signing sends nothing, unless credentials have to be fetched. */
export function createSignedRequests(client: S3Client, settings: S3Settings): SignedRequests {
  const { bucket, keyOf } = settings

  async function sign(
    command: GetObjectCommand | PutObjectCommand,
    headers: Readonly<Record<string, string>>,
    expiresInMs: number,
    signal: AbortSignal,
  ): Promise<{ url: string; expiresAt: number }> {
    const expiresIn = Math.floor(expiresInMs / 1000)
    const signingDate = new Date()
    const names = Object.keys(headers)
    const signing = getSignedUrl(client, command, {
      expiresIn,
      signingDate,
      // In the query, where the SDK would put it, every server passes over the checksum.
      unhoistableHeaders: new Set(names),
      signableHeaders: new Set(['host', ...names]),
    })
    try {
      const url = await orCancelled(signing, signal)
      return { url, expiresAt: Math.floor(signingDate.getTime() / 1000 + expiresIn) * 1000 }
    } catch (error) {
      throw s3Error(error, settings)
    }
  }

  return {
    async signedDownload(id, expiresInMs, signal) {
      checkRead(id, undefined)
      checkExpiry(expiresInMs)
      const command = new GetObjectCommand({
        Bucket: bucket,
        Key: keyOf(id),
        // An agent wrote it: a browser shall not show it as a page of this host.
        ResponseContentDisposition: 'attachment',
        ResponseContentType: 'application/octet-stream',
      })
      return { method: 'GET', headers: {}, ...(await sign(command, {}, expiresInMs, signal)) }
    },

    async signedUpload(id, { size, proof, expiresInMs }, signal) {
      checkRead(id, undefined)
      checkExpiry(expiresInMs)
      checkSize(size)
      const ChecksumSHA256 = sha256Base64(id)
      // Without If-None-Match: a refusal would say that the blob is there, and nothing of who has it.
      const headers = {
        'content-length': String(size),
        'x-amz-checksum-sha256': ChecksumSHA256,
        [`x-amz-meta-${proofName}`]: proof,
      }
      const command = new PutObjectCommand({
        Bucket: bucket,
        Key: keyOf(id),
        ContentLength: size,
        ChecksumSHA256,
        Metadata: { [proofName]: proof },
      })
      return { method: 'PUT', headers, ...(await sign(command, headers, expiresInMs, signal)) }
    },
  }
}

function checkExpiry(expiresInMs: number): void {
  if (expiresInMs >= 1000 && expiresInMs <= longestMs) return
  throw new TuttiError('invalid_argument', 'A signed request lasts from one second to seven days.', {
    field: 'expiresInMs',
  })
}

function checkSize(size: number): void {
  if (Number.isSafeInteger(size) && size >= 0 && size <= largestPut) return
  throw new TuttiError(
    'invalid_argument',
    'One signed upload takes 0 bytes to 5 GiB; send larger blobs through the API.',
    { field: 'size' },
  )
}
