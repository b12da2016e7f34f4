import { TuttiError } from '@tutti/core'
import { expect, test } from 'vitest'
import { isPassing } from './passing-failures.ts'
import { s3Error } from './s3-error.ts'

const place = { bucket: 'blobs', where: 'http://s3.example' }
const answer = (status: number, name: string) =>
  Object.assign(new Error('a secret'), { name, $metadata: { httpStatusCode: status } })
const broken = (code: string) => Object.assign(new Error('a secret'), { code })

test.each([
  ['no_such_bucket', answer(404, 'NoSuchBucket'), false],
  ['access_denied', answer(403, 'AccessDenied'), false],
  ['bad_credentials', answer(403, 'SignatureDoesNotMatch'), false],
  ['bad_credentials', answer(400, 'ExpiredToken'), false],
  ['no_credentials', Object.assign(new Error('none'), { name: 'CredentialsProviderError' }), false],
  ['wrong_region', answer(301, 'PermanentRedirect'), false],
  ['wrong_region', answer(400, 'AuthorizationHeaderMalformed'), false],
  ['no_region', new Error('Region is missing'), false],
  ['wrong_time', answer(403, 'RequestTimeTooSkewed'), true],
  ['full', answer(507, 'XMinioStorageFull'), false],
  ['not_supported', answer(501, 'NotImplemented'), false],
  ['overloaded', answer(503, 'SlowDown'), true],
  ['overloaded', answer(429, 'TooManyRequestsException'), true],
  ['damaged_in_transit', answer(400, 'BadDigest'), true],
  ['unreachable', broken('ECONNREFUSED'), true],
  ['unreachable', broken('ENOTFOUND'), true],
  ['unreachable', broken('CERT_HAS_EXPIRED'), false],
  ['unreachable', new DOMException('', 'TimeoutError'), true],
  ['failed', answer(500, 'InternalError'), true],
  ['failed', answer(418, 'A "name"\nof its own'), false],
])('%s: %s, may pass: %s', (reason, thrown, passes) => {
  expect(isPassing(thrown)).toBe(passes)
  const error = s3Error(thrown, place)
  expect(error).toMatchObject({
    code: 'unavailable',
    detail: { reason, bucket: 'blobs', endpoint: place.where },
  })
  expect(error.message).toMatch(/blobs|s3\.example/)
  expect(error.message).not.toMatch(/secret|\n/)
})

test('a fault of ours is none of the server', () => {
  expect(s3Error(new TypeError('x is undefined'), place)).toMatchObject({ code: 'internal' })
  const own = new TuttiError('cancelled', 'The call was cancelled.')
  expect(s3Error(own, place)).toBe(own)
})
