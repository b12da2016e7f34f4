import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readTemporalAccess } from './read-temporal-access.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'tutti-access-'))))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const refusal = (env: Record<string, string>) => {
  try {
    readTemporalAccess(env)
  } catch (error) {
    return error
  }
  return undefined
}

test('without variables there is neither TLS nor a key, and empty ones are none', () => {
  expect(readTemporalAccess({})).toEqual({ access: {} })
  const empty = {
    TEMPORAL_NAMESPACE: '',
    TEMPORAL_API_KEY: '',
    TEMPORAL_TLS: '',
    TEMPORAL_TLS_SERVER_NAME: '',
  }
  expect(readTemporalAccess(empty)).toEqual({ access: {} })
})

test('an API key switches TLS on, unless it is switched off', () => {
  const key = { TEMPORAL_NAMESPACE: 'mine.abc', TEMPORAL_API_KEY: 'secret' }
  expect(readTemporalAccess(key)).toEqual({ namespace: 'mine.abc', access: { tls: true, apiKey: 'secret' } })
  expect(readTemporalAccess({ ...key, TEMPORAL_TLS: 'false' }).access).toEqual({
    tls: false,
    apiKey: 'secret',
  })
})

test('certificates come from files or from the variables themselves; headers go with each call', () => {
  writeFileSync(join(folder, 'client.pem'), 'CERT')
  const { access } = readTemporalAccess({
    TEMPORAL_TLS_CLIENT_CERT_PATH: join(folder, 'client.pem'),
    TEMPORAL_TLS_CLIENT_KEY_DATA: 'KEY',
    TEMPORAL_TLS_SERVER_CA_CERT_DATA: 'CA',
    TEMPORAL_TLS_SERVER_NAME: 'temporal.example',
    TEMPORAL_GRPC_META_X_TEAM: 'blue',
  })
  const bytes = (text: string) => Uint8Array.from(Buffer.from(text))
  expect(access).toEqual({
    tls: {
      serverNameOverride: 'temporal.example',
      serverRootCACertificate: bytes('CA'),
      clientCertPair: { crt: bytes('CERT'), key: bytes('KEY') },
    },
    metadata: { 'x-team': 'blue' },
  })
})

test('a profile is read only where one is asked for', () => {
  const file = join(folder, 'temporal', 'temporal.toml')
  writeFileSync(
    join(folder, 'temporal.toml'),
    '[profile.default]\nnamespace = "of-the-file"\napi_key = "k"\n',
  )
  expect(readTemporalAccess({ XDG_CONFIG_HOME: folder, HOME: folder })).toEqual({ access: {} })
  expect(readTemporalAccess({ TEMPORAL_CONFIG_FILE: join(folder, 'temporal.toml') })).toEqual({
    namespace: 'of-the-file',
    access: { tls: true, apiKey: 'k' },
  })
  expect(refusal({ TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: 'other' })).toMatchObject({
    code: 'invalid_argument',
  })
})

test('what cannot be used is said', () => {
  const missing = join(folder, 'none.pem')
  expect(refusal({ TEMPORAL_TLS_SERVER_CA_CERT_PATH: missing })).toMatchObject({
    code: 'invalid_argument',
    message: expect.stringContaining(missing) as string,
  })
  expect(refusal({ TEMPORAL_TLS_CLIENT_CERT_DATA: 'CERT' })).toMatchObject({
    message: expect.stringMatching(
      /^TEMPORAL_TLS_CLIENT_KEY_PATH or TEMPORAL_TLS_CLIENT_KEY_DATA is missing/,
    ) as string,
  })
  expect(refusal({ TEMPORAL_TLS_CLIENT_KEY_DATA: 'KEY' })).toMatchObject({
    message: expect.stringMatching(/^TEMPORAL_TLS_CLIENT_CERT_PATH or/) as string,
  })
  expect(
    refusal({ TEMPORAL_TLS_SERVER_CA_CERT_DATA: 'a', TEMPORAL_TLS_SERVER_CA_CERT_PATH: 'b' }),
  ).toMatchObject({
    message: expect.stringContaining('server_ca_cert') as string,
  })
  expect(refusal({ TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: 'true' })).toMatchObject({
    message: expect.stringContaining('TEMPORAL_TLS_SERVER_CA_CERT_PATH') as string,
  })
})
