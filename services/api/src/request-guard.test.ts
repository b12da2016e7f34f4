import { describe, expect, it } from 'vitest'

import { admitRequest, assertMayListen, isLoopback, type GuardedRequest } from './request-guard.ts'

const options = { localKey: 'local', apiKeys: ['one', 'two'], owner: 'local', host: '127.0.0.1', port: 4711 }
const good: GuardedRequest = {
  path: '/tutti.v1.AgentService/GetAgent',
  host: '127.0.0.1:4711',
  origin: undefined,
  authorization: 'Bearer local',
  remoteAddress: '127.0.0.1',
}
const admit = (change: Partial<GuardedRequest>, server: Partial<typeof options> = {}) =>
  admitRequest({ ...options, ...server }, { ...good, ...change })

describe('the guard', () => {
  it('lets in whoever has a key, and knows who has the local one over loopback', () => {
    expect(admit({})).toEqual({ owner: 'local', local: true })
    expect(admit({ authorization: 'bearer two' })).toEqual({ owner: 'local', local: false })
    expect(admit({ remoteAddress: '10.0.0.7' })).toEqual({ owner: 'local', local: false })
    expect(admit({ host: 'LOCALHOST:4711' })).toBeDefined()
    expect(admit({ host: '[::1]:4711' })).toBeDefined()
    expect(admit({ origin: 'http://localhost:4711' })).toBeDefined()
  })

  it.each([
    [undefined],
    [''],
    ['Bearer '],
    ['Bearer  local'],
    ['Bearer locaL'],
    ['Bearer local2'],
    ['Basic local'],
    ['local'],
  ])('refuses %j with the same words', (authorization) => {
    expect(() => admit({ authorization })).toThrow(/^A key is needed/)
  })

  it.each([
    'evil.example',
    'evil.example:4711',
    '127.0.0.1',
    '127.0.0.1:80',
    '',
    undefined,
    'localhost:47110',
  ])('refuses the host %j, also on public paths', (host) => {
    expect(() => admit({ host })).toThrow(/answers to/)
    expect(() => admit({ host, path: '/healthz' })).toThrow(/answers to/)
  })

  it.each([
    'http://evil.example',
    'null',
    '',
    'http://127.0.0.1:80',
    'https://127.0.0.1:4711',
    'http://127.0.0.1:4711.evil.example',
  ])('refuses the origin %j, with the key', (origin) => {
    expect(() => admit({ origin })).toThrow(/other web pages/)
  })

  it('answers health without a key', () => {
    expect(admit({ path: '/healthz', authorization: undefined })).toBeUndefined()
    expect(() => admit({ path: '/metrics', authorization: undefined })).toThrow(/A key is needed/)
  })

  it('never takes an empty key for one', () => {
    expect(() => admit({ authorization: 'Bearer ' }, { localKey: '', apiKeys: [''] })).toThrow(
      /A key is needed/,
    )
  })
})

describe('listening', () => {
  it('needs API keys beyond loopback, and names the setting', () => {
    for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost'])
      expect(() => assertMayListen(host, [])).not.toThrow()
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'example.org', '127.evil.example']) {
      expect(() => assertMayListen(host, []), host).toThrow(/TUTTI_API_KEYS/)
      expect(() => assertMayListen(host, ['key'])).not.toThrow()
    }
    expect(isLoopback('::ffff:127.0.0.1')).toBe(true)
  })
})
