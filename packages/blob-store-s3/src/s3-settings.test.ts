import { expect, test } from 'vitest'
import { createS3BlobStore } from './s3-blob-store.ts'
import { s3Settings } from './s3-settings.ts'

test('a custom server is asked in path style and in a region that all take', () => {
  expect(s3Settings({ bucket: 'blobs', endpoint: 'http://127.0.0.1:9000/' })).toMatchObject({
    endpoint: 'http://127.0.0.1:9000',
    where: 'http://127.0.0.1:9000',
    region: 'us-east-1',
    pathStyle: true,
    folder: 'files/',
  })
  expect(s3Settings({ bucket: 'blobs', region: 'eu-north-1', prefix: '/a/b/' })).toMatchObject({
    endpoint: undefined,
    where: 'AWS S3 in eu-north-1',
    region: 'eu-north-1',
    pathStyle: false,
    folder: 'a/b/files/',
  })
  expect(s3Settings({ bucket: 'blobs' }).region).toBeUndefined()
})

test.each([
  ['bucket', { bucket: '' }],
  ['bucket', { bucket: '../x' }],
  ['prefix', { bucket: 'blobs', prefix: 'a//b' }],
  ['prefix', { bucket: 'blobs', prefix: '../other' }],
  ['prefix', { bucket: 'blobs', prefix: 'x'.repeat(256) }],
  ['endpoint', { bucket: 'blobs', endpoint: 'localhost:9000' }],
  ['endpoint', { bucket: 'blobs', endpoint: 'http://me:secret@localhost' }],
  ['publicEndpoint', { bucket: 'blobs', publicEndpoint: 'ftp://x' }],
])('an option that cannot be is refused by its name: %s %o', (field, options) => {
  let error: unknown
  try {
    createS3BlobStore(options).close()
  } catch (thrown) {
    error = thrown
  }
  expect(error).toMatchObject({ code: 'invalid_argument', detail: { field } })
  expect(String(error)).not.toContain('secret')
})
