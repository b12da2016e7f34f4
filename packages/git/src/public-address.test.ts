import { expect, test } from 'vitest'
import { isPublicAddress } from './public-address.ts'

test.each([
  ['this host', '0.0.0.0 0.1.2.3 127.0.0.1 127.255.0.1 :: ::1'],
  ['private', '10.0.0.1 10.1.1.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd00::1 fdff:ffff::1'],
  ['carrier-grade NAT', '100.64.0.1 100.127.255.255'],
  ['link-local and site-local', '169.254.0.1 169.254.255.255 fe80::1 febf::1 fe80::1%eth0 fec0::1'],
  ['metadata', '169.254.169.254 169.254.170.2 168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254'],
  ['multicast and broadcast', '224.0.0.1 239.255.255.255 255.255.255.255 ff02::1 ff0e::1'],
  ['reserved', '192.0.0.8 192.0.2.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 240.0.0.1 254.1.1.1'],
  [
    'reserved in version 6',
    '100::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 3fff::1 4000::1 5f00::1 8000::1',
  ],
  [
    'mapped and compatible',
    '::7f00:1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 ::ffff:0:8.8.8.8',
  ],
  ['translated by NAT64', '64:ff9b::7f00:1 64:ff9b::8.8.8.8 64:ff9b:1::1 64:ff9b:1:ffff::8.8.8.8'],
  ['tunnelled by 6to4 and Teredo', '192.88.99.1 2002:7f00:1:: 2002:808:808::1 2001::1 2001:0:808:808::1'],
  [
    'an odd spelling',
    '127.1 0x7f.1 0x08080808 134744072 010.0.0.1 08.8.8.8 8.8.8 8.8.8.8. [2606:4700::1] 1.1.1.1/32',
  ],
  [
    'no address',
    'localhost example.com 2130706433.example 1.2.3.4.5 256.1.1.1 2606:4700:::1 2606:4700::1%eth0',
  ],
])('SEC-04 no public address: %s', (_, texts) => {
  expect(['', ...texts.split(' ')].filter(isPublicAddress)).toEqual([])
})

test('addresses of the public internet are public, also beside the refused ranges', () => {
  const four =
    '1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.215.14 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 ' +
    '168.63.129.15 169.253.255.255 172.15.255.255 172.32.0.1 192.0.1.1 192.167.1.1 198.17.0.1 198.20.0.0 223.255.255.255'
  const six = '2001:200::1 2001:4860:4860::8888 2606:4700:4700::1111 2A00:1450::1 2003::1 2620:fe::fe 3ffe::1'
  const all = `${four} ${six}`.split(' ')
  expect(all.filter((text) => !isPublicAddress(text))).toEqual([])
})
