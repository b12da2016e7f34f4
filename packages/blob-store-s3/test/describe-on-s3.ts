import { S3Client } from '@aws-sdk/client-s3'
import { createS3Server, type S3Server } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, inject } from 'vitest'
import { createS3BlobStore, type S3BlobStore, type S3BlobStoreOptions } from '../src/index.ts'

declare module 'vitest' {
  interface ProvidedContext {
    s3Servers: Record<'ministack' | 'versitygw', string | null>
    s3Missing: string
  }
}

/** A bucket on a real server. */
export interface TestBucket {
  readonly server: S3Server
  readonly name: string
  /** The SDK's own client, for what only a test does. */
  readonly client: S3Client
  /** A store with a prefix of its own, unless told otherwise. Closed after the test. */
  store(options?: Partial<S3BlobStoreOptions>): S3BlobStore
}

/** Failures that pass are tried again quickly. */
export const quick = { firstPauseMs: 5, longestPauseMs: 50 }

/** Runs the tests once on each server; skipped with the reason where one is not installed. */
export function describeOnS3(name: string, tests: (bucket: () => TestBucket) => void): void {
  describe.each(['ministack', 'versitygw'] as const)('%s', (kind) => {
    const path = inject('s3Servers')[kind]
    const why = path === null ? `: ${inject('s3Missing')}` : ''
    describe.skipIf(path === null)(`${name}${why}`, () => {
      let bucket: TestBucket
      let stores: S3BlobStore[] = []
      let made = 0

      beforeAll(async () => {
        const server = await createS3Server(kind, path!)
        const { endpoint, region, credentials } = server
        const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true })
        const bucketName = 'blobs'
        bucket = {
          server,
          name: bucketName,
          client,
          store(options) {
            made += 1
            const own = { bucket: bucketName, prefix: `tests/${made}`, endpoint, credentials }
            const store = createS3BlobStore({ ...own, ...options, limits: { ...quick, ...options?.limits } })
            stores.push(store)
            return store
          },
        }
        await server.createBucket(bucketName)
      })
      afterEach(() => {
        for (const store of stores) store.close()
        stores = []
      })
      afterAll(async () => {
        bucket?.client.destroy()
        await bucket?.server.remove()
      })

      tests(() => bucket)
    })
  })
}
