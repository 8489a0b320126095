package expr

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"strconv"
	"strings"

	"streamdb/sql/sqlerr"
)

// hmacOf is hmac(data, key, algorithm).
func hmacOf(data, key, how string) (string, error) {
	var h func() hash.Hash
	switch strings.ToLower(how) {
	case "md5":
		h = md5.New
	case "sha1":
		h = sha1.New
	case "sha224":
		h = sha256.New224
	case "sha256":
		h = sha256.New
	case "sha384":
		h = sha512.New384
	case "sha512":
		h = sha512.New
	default:
		return "", sqlerr.New(sqlerr.InvalidParameter, "Cannot use \"%s\": No such hash algorithm", how)
	}
	m := hmac.New(h, []byte(key))
	m.Write([]byte(data))
	return string(m.Sum(nil)), nil
}

// crypt is pgcrypto's raw encrypt and decrypt by AES, in mode cbc (with a zero
// vector) or ecb, padded as PKCS#7 unless the name says pad:none. The key is filled with zeros to the
// next length AES has.
func crypt(data, key, how string, encrypt bool) (string, error) {
	name, pad, _ := strings.Cut(strings.ToLower(how), "/")
	name, mode, ok := strings.Cut(name, "-")
	if !ok {
		mode = "cbc"
	}
	if name != "aes" || mode != "cbc" && mode != "ecb" || pad != "" && pad != "pad:pkcs" && pad != "pad:none" {
		return "", sqlerr.New(sqlerr.InvalidParameter, "Cannot use \"%s\": No such cipher algorithm", how)
	}
	k := []byte(key)
	switch {
	case len(k) > 32:
		return "", sqlerr.New(sqlerr.InvalidParameter, "encrypt error: Key was too big")
	case len(k) > 24:
		k = append(k, make([]byte, 32-len(k))...)
	case len(k) > 16:
		k = append(k, make([]byte, 24-len(k))...)
	default:
		k = append(k, make([]byte, 16-len(k))...)
	}
	block, err := aes.NewCipher(k)
	if err != nil {
		return "", sqlerr.New(sqlerr.InvalidParameter, "encrypt error: %w", err)
	}
	in := []byte(data)
	if encrypt && pad != "pad:none" {
		n := aes.BlockSize - len(in)%aes.BlockSize
		for range n {
			in = append(in, byte(n))
		}
	}
	if len(in)%aes.BlockSize != 0 {
		return "", sqlerr.New(sqlerr.InvalidParameter, "%s error: Data not a multiple of block size", map[bool]string{true: "encrypt", false: "decrypt"}[encrypt])
	}
	out := make([]byte, len(in))
	iv := make([]byte, aes.BlockSize)
	switch {
	case mode == "cbc" && encrypt:
		cipher.NewCBCEncrypter(block, iv).CryptBlocks(out, in)
	case mode == "cbc":
		cipher.NewCBCDecrypter(block, iv).CryptBlocks(out, in)
	default:
		for i := 0; i < len(in); i += aes.BlockSize {
			if encrypt {
				block.Encrypt(out[i:], in[i:])
			} else {
				block.Decrypt(out[i:], in[i:])
			}
		}
	}
	if !encrypt && pad != "pad:none" {
		n := 0
		if len(out) > 0 {
			n = int(out[len(out)-1])
		}
		if n == 0 || n > aes.BlockSize || n > len(out) {
			return "", sqlerr.New(sqlerr.InvalidParameter, "decrypt error: Decryption failed")
		}
		out = out[:len(out)-n]
	}
	return string(out), nil
}

// inetAton is the number of an IPv4 address.
func inetAton(s string) (int64, error) {
	parts := strings.Split(s, ".")
	v := int64(0)
	for _, p := range parts {
		n, err := strconv.ParseUint(p, 10, 8)
		if err != nil || len(parts) != 4 {
			return 0, sqlerr.New(sqlerr.InvalidParameter, "invalid IP address: \"%s\"", s)
		}
		v = v<<8 | int64(n)
	}
	return v, nil
}

// inetNtoa is the address of a number.
func inetNtoa(v int64) (string, error) {
	if v < 0 || v > 1<<32-1 {
		return "", sqlerr.New(sqlerr.OutOfRange, "IP address number out of range: %d", v)
	}
	var parts []string
	for shift := 24; shift >= 0; shift -= 8 {
		parts = append(parts, strconv.FormatInt(v>>shift&255, 10))
	}
	return strings.Join(parts, "."), nil
}
