import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3'
import { Readable } from 'node:stream'
import { bodyChunks } from './body-chunks.ts'
import { retry } from './retry.ts'
import { s3Failure } from './s3-failure.ts'
import type { S3Settings } from './s3-settings.ts'

export interface StoredObject {
  readonly size: number
  /** Base64, of the whole object; undefined where the server keeps none, or only those of parts. */
  readonly sha256: string | undefined
  /** What the signed request that stored it was given; undefined for an object that this store put there. */
  readonly proof: string | undefined
}

/** The name of {@link StoredObject.proof} in an object's metadata. */
export const proofName = 'tutti-proof'

export interface OpenedObject {
  /** How many bytes the server is about to send. */
  readonly length: number
  readonly chunks: AsyncGenerator<Uint8Array>
}

export interface ListedObject {
  readonly key: string
  readonly size: number
  /** Milliseconds since 1970. */
  readonly storedAt: number
}

/** Requests about objects, repeated while their failure may pass. Failures are thrown as the SDK made them. */
export interface S3Objects {
  /** `sha256` in base64. Resolves to false when `once` was asked for and there is an object; what it is remains to be seen. */
  put(key: string, bytes: Uint8Array, sha256: string, once: boolean, signal: AbortSignal): Promise<boolean>
  /** Undefined when there is no such object. */
  inspect(key: string, signal: AbortSignal): Promise<StoredObject | undefined>
  /**
   * Reads from `start` up to `end`, or to the object's own end. Undefined when that is nothing, as `start` lies at or behind its end.
   * Not repeated: who reads on after a broken answer has to begin elsewhere.
   */
  open(
    key: string,
    start: number,
    end: number | undefined,
    signal: AbortSignal,
  ): Promise<OpenedObject | undefined>
  /** Those whose key begins so, in the order of their keys. */
  list(prefix: string, signal: AbortSignal): AsyncGenerator<ListedObject>
  /** Does nothing when there is no such object. */
  remove(key: string, signal: AbortSignal): Promise<void>
}

export function createS3Objects(client: S3Client, { bucket, limits }: S3Settings): S3Objects {
  const address = (key: string) => ({ Bucket: bucket, Key: key })
  return {
    async put(key, bytes, sha256, once, signal) {
      try {
        await retry(limits, signal, () => {
          const command = new PutObjectCommand({
            ...address(key),
            Body: bytes,
            ContentLength: bytes.length,
            ContentType: 'application/octet-stream',
            ChecksumSHA256: sha256,
            ...(once && { IfNoneMatch: '*' }),
          })
          return client.send(command, { abortSignal: signal })
        })
        return true
      } catch (error) {
        if (once && s3Failure(error).status === 412) return false
        throw error
      }
    },

    async inspect(key, signal) {
      try {
        const found = await retry(limits, signal, () =>
          client.send(new HeadObjectCommand({ ...address(key), ChecksumMode: 'ENABLED' }), {
            abortSignal: signal,
          }),
        )
        const sum = found.ChecksumSHA256
        return {
          size: found.ContentLength ?? 0,
          sha256: isWholeSha256(sum) ? sum : undefined,
          proof: found.Metadata?.[proofName],
        }
      } catch (error) {
        if (s3Failure(error).status === 404) return undefined
        throw error
      }
    },

    async open(key, start, end, signal) {
      // All of an empty object is no range.
      const range =
        start > 0 || end !== undefined ? `bytes=${start}-${end === undefined ? '' : end - 1}` : undefined
      try {
        const command = new GetObjectCommand({ ...address(key), ...(range && { Range: range }) })
        const { Body, ContentLength } = await client.send(command, { abortSignal: signal })
        if (!(Body instanceof Readable)) throw new TypeError('The SDK gave no stream of Node.')
        return { length: ContentLength ?? 0, chunks: bodyChunks(Body, limits.inactivityMs, signal) }
      } catch (error) {
        if (s3Failure(error).status === 416) return undefined
        throw error
      }
    },

    async *list(prefix, signal) {
      for (let after: string | undefined; ;) {
        const command = new ListObjectsV2Command({
          Bucket: bucket,
          Prefix: prefix,
          ...(after !== undefined && { StartAfter: after }),
        })
        const page = await retry(limits, signal, () => client.send(command, { abortSignal: signal }))
        for (const { Key, Size, LastModified } of page.Contents ?? []) {
          if (Key === undefined) continue
          after = Key
          yield { key: Key, size: Size ?? 0, storedAt: LastModified?.getTime() ?? 0 }
        }
        if (!page.IsTruncated || !page.Contents?.length) return
      }
    },

    async remove(key, signal) {
      await retry(limits, signal, () =>
        client.send(new DeleteObjectCommand(address(key)), { abortSignal: signal }),
      )
    },
  }
}

/** That of an object in parts is one over the sums of the parts, with their number behind a hyphen. */
const isWholeSha256 = (sum: string | undefined): sum is string => /^[A-Za-z0-9+/]{43}=$/.test(sum ?? '')
