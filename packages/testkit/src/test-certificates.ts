import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface TestCertificate {
  readonly certPath: string
  readonly keyPath: string
  readonly cert: Buffer
  readonly key: Buffer
}

/** An authority that only these tests know, with a certificate for `localhost` and one for a client. Made by `openssl`. */
export function createTestCertificates(
  folder: string,
): Record<'authority' | 'server' | 'client', TestCertificate> {
  const make = (name: string, more: readonly string[]): TestCertificate => {
    const certPath = join(folder, `${name}.pem`)
    const keyPath = join(folder, `${name}.key`)
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyPath]
    const rest = ['-out', certPath, '-days', '2', '-subj', `/CN=${name}`, ...more]
    execFileSync('openssl', ['req', '-x509', ...key, ...rest], { stdio: ['ignore', 'ignore', 'pipe'] })
    return { certPath, keyPath, cert: readFileSync(certPath), key: readFileSync(keyPath) }
  }
  const authority = make('authority', [])
  const signed = (name: string, ...extensions: readonly string[]) =>
    make(name, [
      '-CA',
      authority.certPath,
      '-CAkey',
      authority.keyPath,
      ...['basicConstraints=CA:FALSE', ...extensions].flatMap((extension) => ['-addext', extension]),
    ])
  return { authority, server: signed('server', 'subjectAltName=DNS:localhost'), client: signed('client') }
}
